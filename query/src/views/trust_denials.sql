-- Every denial for want of trust or because of danger: what was asked for, what was there, and how dangerous it would have been
-- trust_gap: How many levels of trust were missing, in the order untested, generated, validated, community_reviewed, certified
--
-- Filters on time choose files. A confirmation that is still to be given is no denial: see `confirmations`.
WITH ladder AS (
  SELECT
    *,
    array_position(['untested', 'generated', 'validated', 'community_reviewed', 'certified'], required_trust)
      AS required_step,
    array_position(['untested', 'generated', 'validated', 'community_reviewed', 'certified'], actual_trust)
      AS actual_step
  FROM events
  WHERE kind = 'error'
    AND category = 'PERMISSION'
    AND canonical <> 'CONFIRMATION_REQUIRED'
    AND (required_trust IS NOT NULL OR actual_trust IS NOT NULL OR danger_level IS NOT NULL)
)
SELECT
  time,
  service,
  environment,
  client,
  operation,
  canonical,
  required_trust,
  actual_trust,
  CAST(required_step AS bigint) - CAST(actual_step AS bigint) AS trust_gap,
  danger_level,
  hidden,
  message,
  fingerprint,
  request_id,
  trace_id,
  event_id,
  coalesce(represents, 1) AS represents,
  date
FROM ladder
