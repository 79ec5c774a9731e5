-- What each server could do better about its errors: the number of errors with each finding, by service and dialect
-- finding: The finding, as a word of a closed list
-- errors: The number of errors with the finding; for reply_not_captured the number of calls
-- share: The share of all errors, for reply_not_captured of all calls, of this service in this dialect, from 0 to 1
-- example: The newest message of an error with the finding
-- example_event_id: The id of the newest error with the finding
-- last_seen: The time of the newest error with the finding
--
-- Filters on service and dialect skip files. For a time range, unnest the findings of `errors`.
WITH found AS (
  SELECT service, dialect, time, event_id, message, represents, unnest(findings) AS finding
  FROM errors
),
counted AS (
  SELECT
    service, dialect, finding,
    sum(coalesce(represents, 1)) AS errors,
    last_value(message ORDER BY time, event_id) AS example,
    last_value(event_id ORDER BY time, event_id) AS example_event_id,
    max(time) AS last_seen
  FROM found
  GROUP BY service, dialect, finding
),
totals AS (
  SELECT service, dialect, sum(coalesce(represents, 1)) AS errors
  FROM errors
  GROUP BY service, dialect
),
-- Services of which at least a quarter of the calls have no captured reply: hidden failures of these cannot be seen.
blind AS (
  SELECT service, sum(calls) AS calls, sum(unverified_calls) AS unverified, max(minute) AS last_seen
  FROM error_rates
  GROUP BY service
)
SELECT
  counted.service,
  counted.dialect,
  counted.finding,
  counted.errors,
  counted.errors / CAST(totals.errors AS double precision) AS share,
  counted.example,
  counted.example_event_id,
  counted.last_seen
FROM counted
JOIN totals
  ON counted.dialect = totals.dialect AND (counted.service IS NOT DISTINCT FROM totals.service)
UNION ALL
SELECT
  service,
  'jsonrpc' AS dialect,
  'reply_not_captured' AS finding,
  unverified AS errors,
  unverified / CAST(calls AS double precision) AS share,
  CAST(NULL AS varchar) AS example,
  CAST(NULL AS varchar) AS example_event_id,
  last_seen
FROM blind
WHERE unverified > 0 AND unverified * 4 >= calls
