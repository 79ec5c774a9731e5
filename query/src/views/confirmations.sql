-- What became of each confirmation: one row for each token, from the question to its use, or to its end without one
-- token_hash: The confirmation token, hashed: it can be followed, not used
-- state: required or granted while it waits; then used, replayed, revoked, expired, or abandoned after an hour without use; invalid when nobody had asked for it
-- operation: What was to be confirmed
-- required_at: When somebody was asked
-- granted_at: When a person agreed
-- used_at: When the token was accepted
-- revoked_at: When it was withdrawn
-- expired_at: When it was tried after its time
-- replayed_at: When it was first tried again after its use
-- attempts: How often somebody tried to use it
-- refusals: How many of those tries were refused: too late, used before, for another operation, or unknown
-- seconds_to_use: How long it took from the question to the use
-- last_seen: When it was last spoken of
--
-- Filters on token_hash choose files. Of an audit trail that is incomplete a token is what can be seen of it.
WITH tokens AS (
  SELECT
    token_hash,
    min(service) AS service,
    coalesce(
      min(operation) FILTER (WHERE canonical IN ('TOKEN_ISSUED', 'CONFIRMATION_REQUIRED', 'RATE_LIMIT_QUOTA_PAUSE')),
      min(operation)
    ) AS operation,
    min(client) AS client,
    min(danger_level) AS danger_level,
    min(time) FILTER (WHERE canonical IN ('TOKEN_ISSUED', 'CONFIRMATION_REQUIRED', 'RATE_LIMIT_QUOTA_PAUSE'))
      AS required_at,
    min(time) FILTER (WHERE canonical = 'CONFIRMATION_GRANTED') AS granted_at,
    min(time) FILTER (WHERE canonical = 'TOKEN_VALIDATED') AS used_at,
    min(time) FILTER (WHERE canonical = 'TOKEN_REVOKED') AS revoked_at,
    min(time) FILTER (WHERE canonical = 'TOKEN_EXPIRED') AS expired_at,
    min(time) FILTER (WHERE canonical = 'TOKEN_ALREADY_USED') AS replayed_at,
    sum(CASE
      WHEN canonical = 'TOKEN_VALIDATED' OR (kind = 'error' AND category = 'TOKEN') THEN coalesce(represents, 1)
      ELSE 0
    END) AS attempts,
    sum(CASE WHEN kind = 'error' AND category = 'TOKEN' THEN coalesce(represents, 1) ELSE 0 END) AS refusals,
    max(time) AS last_seen
  FROM events
  WHERE token_hash IS NOT NULL
  GROUP BY token_hash
)
SELECT
  token_hash,
  service,
  operation,
  client,
  danger_level,
  CASE
    WHEN replayed_at IS NOT NULL THEN 'replayed'
    WHEN used_at IS NOT NULL THEN 'used'
    WHEN revoked_at IS NOT NULL THEN 'revoked'
    WHEN expired_at IS NOT NULL THEN 'expired'
    WHEN required_at IS NULL AND granted_at IS NULL THEN 'invalid'
    WHEN last_seen < now() - INTERVAL '1 hour' THEN 'abandoned'
    WHEN granted_at IS NOT NULL THEN 'granted'
    ELSE 'required'
  END AS state,
  required_at,
  granted_at,
  used_at,
  revoked_at,
  expired_at,
  replayed_at,
  attempts,
  refusals,
  (arrow_cast(used_at, 'Int64') - arrow_cast(required_at, 'Int64')) / 1000000.0 AS seconds_to_use,
  last_seen
FROM tokens
