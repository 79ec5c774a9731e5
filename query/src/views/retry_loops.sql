-- The same client failing the same way at least three times within ten minutes of the clock: a loop that somebody should break
-- time: The start of the ten minutes
-- client: Who asks again and again: a client, or else a session; nobody's failures are no loop
-- attempts: How many times it failed
-- first_seen: When it failed first in these ten minutes
-- last_seen: When it failed last in these ten minutes
-- span_s: From the first to the last, in seconds
-- attempts_per_minute: How fast it was tried again
-- retryable: Whether a retry can help; false means that all of it was in vain
-- recovery: What the caller should do instead
--
-- Filters on time choose files. A loop that lasts longer has a row for each ten minutes.
SELECT
  time_bucket('10 minutes', time) AS time,
  service,
  coalesce(client, session_id) AS client,
  operation,
  canonical,
  category,
  template,
  fingerprint,
  sum(coalesce(represents, 1)) AS attempts,
  min(time) AS first_seen,
  max(time) AS last_seen,
  (arrow_cast(max(time), 'Int64') - arrow_cast(min(time), 'Int64')) / 1000000.0 AS span_s,
  (sum(coalesce(represents, 1)) - 1) * 60000000.0 / nullif(arrow_cast(max(time), 'Int64') - arrow_cast(min(time), 'Int64'), 0)
    AS attempts_per_minute,
  bool_or(retryable) AS retryable,
  min(recovery) AS recovery
FROM events
WHERE kind = 'error' AND coalesce(client, session_id) IS NOT NULL
GROUP BY
  time_bucket('10 minutes', time), service, coalesce(client, session_id), operation, canonical, category, template,
  fingerprint
HAVING sum(coalesce(represents, 1)) >= 3
