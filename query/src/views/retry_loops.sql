-- Retry loops: a client that failed in the same way at least three times within ten minutes of the clock
-- time: The start of the ten minutes
-- client: The client that retries, or else the session; failures without either are left out
-- attempts: The number of failed attempts
-- first_seen: The time of the first failure in these ten minutes
-- last_seen: The time of the newest failure in these ten minutes
-- span_s: The time from the first to the newest failure, in seconds
-- attempts_per_minute: The rate of attempts per minute
-- retryable: Whether a retry can help; if false, none of the attempts could succeed
-- recovery: What the caller should do instead of a retry
--
-- Filters on time skip files. A loop that lasts longer has a row for each ten minutes.
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
FROM errors
WHERE coalesce(client, session_id) IS NOT NULL
GROUP BY
  time_bucket('10 minutes', time), service, coalesce(client, session_id), operation, canonical, category, template,
  fingerprint
HAVING sum(coalesce(represents, 1)) >= 3
