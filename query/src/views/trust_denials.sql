-- Every operation that was denied because of its danger level or the caller's trust level
-- trust_gap: The number of missing trust levels, in the order untested, generated, validated, community_reviewed, certified
--
-- Filters on time skip files. An operation that still needs a confirmation was not denied: see `confirmations`.
WITH ladder AS (
  SELECT
    *,
    array_position(['untested', 'generated', 'validated', 'community_reviewed', 'certified'], required_trust)
      AS required_step,
    array_position(['untested', 'generated', 'validated', 'community_reviewed', 'certified'], actual_trust)
      AS actual_step
  FROM errors
  WHERE category = 'PERMISSION'
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
