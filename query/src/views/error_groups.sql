-- Groups of errors that differ only in their values, counted over the whole history
-- errors: The number of errors
-- hidden_errors: The number of errors in replies that their protocol calls a success
-- clients: The number of different clients
-- first_seen: The time of the first error
-- last_seen: The time of the newest error
-- newest_message: The newest message, with secrets redacted
-- newest_event_id: The id of the newest event
-- newest_trace_id: The id of the newest trace
--
-- The view reads `error_counts`, and the errors themselves only if a query wants clients, newest_message or
-- newest_trace_id. Filters on the columns from fingerprint to template skip files; filters on first_seen and last_seen
-- do not, since a group is known only when all of it was read. For a time range group `error_counts` by fingerprint.
--
-- Services are compared, so that a filter on service skips files of errors, too. Nulls are not equal, hence two
-- subqueries.
WITH counted AS (
  SELECT
    fingerprint, canonical, category, service, operation, template,
    sum(errors) AS errors,
    sum(CASE WHEN hidden THEN errors ELSE 0 END) AS hidden_errors,
    min(first_seen) AS first_seen,
    max(last_seen) AS last_seen,
    last_value(newest_event_id ORDER BY last_seen, newest_event_id) FILTER (WHERE newest_event_id IS NOT NULL)
      AS newest_event_id
  FROM error_counts
  GROUP BY fingerprint, canonical, category, service, operation, template
  HAVING sum(errors) > 0
),
detailed AS (
  SELECT
    *,
    CASE
      WHEN service IS NULL THEN (
        SELECT named_struct(
          'clients', count(DISTINCT client),
          'message', last_value(message ORDER BY time, event_id),
          'trace_id', last_value(trace_id ORDER BY time, event_id) FILTER (WHERE trace_id IS NOT NULL)
        )
        FROM errors
        WHERE errors.service IS NULL AND errors.fingerprint = counted.fingerprint
      )
      ELSE (
        SELECT named_struct(
          'clients', count(DISTINCT client),
          'message', last_value(message ORDER BY time, event_id),
          'trace_id', last_value(trace_id ORDER BY time, event_id) FILTER (WHERE trace_id IS NOT NULL)
        )
        FROM errors
        WHERE errors.service = counted.service AND errors.fingerprint = counted.fingerprint
      )
    END AS details
  FROM counted
)
SELECT
  fingerprint,
  canonical,
  category,
  service,
  operation,
  template,
  errors,
  hidden_errors,
  details['clients'] AS clients,
  first_seen,
  last_seen,
  details['message'] AS newest_message,
  newest_event_id,
  details['trace_id'] AS newest_trace_id
FROM detailed
