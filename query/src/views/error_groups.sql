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
-- Filters on the columns from fingerprint to template skip files; filters on first_seen and last_seen do not, since a
-- group is known only when all of it was read. For a time range group `errors` by fingerprint.
SELECT
  fingerprint,
  canonical,
  category,
  service,
  operation,
  template,
  sum(coalesce(represents, 1)) AS errors,
  sum(CASE WHEN hidden THEN coalesce(represents, 1) ELSE 0 END) AS hidden_errors,
  count(DISTINCT client) AS clients,
  min(time) AS first_seen,
  max(time) AS last_seen,
  last_value(message ORDER BY time, event_id) AS newest_message,
  last_value(event_id ORDER BY time, event_id) AS newest_event_id,
  last_value(trace_id ORDER BY time, event_id) FILTER (WHERE trace_id IS NOT NULL) AS newest_trace_id
FROM errors
GROUP BY fingerprint, canonical, category, service, operation, template
