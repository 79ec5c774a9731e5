-- Failures counted by time and group: the rows of event_counts of kind error, without protocol probes
-- errors: The number of failures. It is negative in a row that takes back what another row counts
--
-- Filters on bucket, service, canonical, category and operation skip files. Add up the errors of rows: a bucket can have
-- several rows of one group.
SELECT
  bucket,
  service,
  canonical,
  operation,
  fingerprint,
  category,
  dialect,
  template,
  hidden,
  fault,
  service_version,
  environment,
  events AS errors,
  first_seen,
  last_seen,
  newest_event_id,
  date
FROM event_counts
WHERE kind = 'error' AND fault IS DISTINCT FROM 'probe'
