-- The course of each confirmation: one row for each token, from the request for it to its use or its end
-- token_hash: The hash of the confirmation token, by which it can be followed but not used
-- state: The state: required or granted while it waits; then used, replayed, revoked, expired, or abandoned after an hour without use; invalid if the server never asked for it
-- operation: The operation to be confirmed
-- required_at: The time at which the server asked for the confirmation
-- granted_at: The time at which a person agreed
-- used_at: The time at which the server accepted the token
-- revoked_at: The time at which the token was revoked
-- expired_at: The time of the first attempt to use the token after its expiry
-- replayed_at: The time of the first attempt to use the token again
-- attempts: The number of attempts to use the token
-- refusals: The number of attempts that the server refused: too late, used before, for another operation, or unknown
-- seconds_to_use: The seconds from required_at to used_at
-- last_seen: The time of the newest event of the token
--
-- Filters on token_hash skip files. If the audit trail is incomplete, the row shows the part that exists.
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
  FROM (SELECT supersedes FROM events WHERE supersedes IS NOT NULL) AS better
  RIGHT ANTI JOIN events
    ON better.supersedes = events.event_id
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
