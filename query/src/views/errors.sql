-- Every failure once: events of kind error, without further reports of the same failure and without protocol probes
--
-- A failure that several spans or log records report has a row for each report; the one with the best evidence stands
-- for it. The other reports are in `events`, with `duplicate_of` or replaced by `supersedes`.
--
-- The join is written from the right, so that its hash table holds the few replaced reports and not all events.
SELECT events.*
FROM (SELECT supersedes FROM events WHERE supersedes IS NOT NULL) AS better
RIGHT ANTI JOIN events
  ON better.supersedes = events.event_id
WHERE events.kind = 'error'
  AND coalesce(events.represents, 1) > 0
  AND events.fault IS DISTINCT FROM 'probe'
