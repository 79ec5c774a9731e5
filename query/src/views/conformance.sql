-- What each server could do better about its errors: how many of them have a finding, by service and dialect
-- finding: What could be better, as one of a closed list of words
-- errors: How many errors have it
-- share: How many that is of all errors of this service in this dialect, from 0 to 1
-- example: The newest message of such an error
-- example_event_id: The newest such event
-- last_seen: When it happened last
--
-- Filters on service and dialect choose files. For a time range unnest the findings of `errors`.
WITH found AS (
  SELECT service, dialect, time, event_id, message, represents, unnest(findings) AS finding
  FROM events
  WHERE kind = 'error'
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
  FROM events
  WHERE kind = 'error'
  GROUP BY service, dialect
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
