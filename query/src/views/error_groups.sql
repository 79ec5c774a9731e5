-- What goes wrong again and again: errors that differ only in their values are one group, counted over all of history
-- errors: How many errors there were
-- hidden_errors: How many of them travelled in a reply that its protocol calls a success
-- clients: How many different clients met it
-- first_seen: When it happened first
-- last_seen: When it happened last
-- newest_message: What was said last, without its secrets
-- newest_event_id: The newest event
-- newest_trace_id: The trace of the newest event that has one
--
-- Filters on the columns from fingerprint to template choose files; first_seen and last_seen cannot, since a group is
-- known only when all of it was read. For a time range group `errors` by fingerprint.
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
FROM events
WHERE kind = 'error'
GROUP BY fingerprint, canonical, category, service, operation, template
