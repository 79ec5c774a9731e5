-- The state of each quota by service, client and metric: its newest report, and when it will be exhausted at the present rate
-- state: The present state: the newest level; reset once resets_at is past; stale a day after the newest report if the time of the reset is unknown
-- quota_level: The newest reported level: warning, pause, exhausted or exceeded
-- quota_current: The used amount in the newest report
-- quota_limit: The limit: the hardest one reported since the last reset
-- usage: The used share; 1 when nothing is left
-- growth_per_hour: The use per hour: the slope of the reports since the last reset, over at most a day
-- projected_exhaustion: The time at which the quota will be exhausted at that rate; null if it already is, if that takes more than a year, or if it resets before
-- resets_at: The time of the next reset: as reported, else observed_at plus the reported wait, else plus the period in the name (per_hour)
-- retry_after_s: The newest reported time until a retry is allowed, in seconds
-- observed_at: The time of the newest report
-- samples: The number of rows from which the rate is computed; a row of coalesced events counts once
--
-- Filters on service skip files. A quota was reset when less of it is used than before, or when resets_at has passed.
WITH said AS (
  SELECT
    service, client, quota_metric, time, event_id, quota_level, quota_current, quota_limit, retry_after_s, resets_at
  FROM events
  WHERE quota_level IS NOT NULL
),
-- The newest reports are found by their time, so that only they are sorted and not the whole history.
latest AS (
  SELECT
    service, client, quota_metric,
    max(time) AS observed_at,
    max(CASE WHEN quota_current IS NOT NULL THEN time END) AS measured_at
  FROM said
  GROUP BY service, client, quota_metric
),
newest AS (
  SELECT
    said.service, said.client, said.quota_metric,
    max(said.time) AS observed_at,
    last_value(said.quota_level ORDER BY said.time, said.quota_current, said.event_id) AS quota_level,
    last_value(said.quota_current ORDER BY said.time, said.quota_current, said.event_id)
      FILTER (WHERE said.quota_current IS NOT NULL) AS quota_current,
    last_value(said.retry_after_s ORDER BY said.time, said.quota_current, said.event_id) AS retry_after_s,
    last_value(said.resets_at ORDER BY said.time, said.quota_current, said.event_id) AS said_resets_at
  FROM said
  JOIN latest
    ON (said.service IS NOT DISTINCT FROM latest.service)
    AND (said.client IS NOT DISTINCT FROM latest.client)
    AND (said.quota_metric IS NOT DISTINCT FROM latest.quota_metric)
  WHERE said.time = latest.observed_at OR said.time = latest.measured_at
  GROUP BY said.service, said.client, said.quota_metric
),
-- The samples of the last day of each quota, the newest first, each beside the one that came after it. The names are
-- those of `newest`: a sort keeps all texts of the batches that it is given, and these are few.
samples AS (
  SELECT
    newest.service, newest.client, newest.quota_metric,
    said.time, said.quota_current, said.quota_limit, said.resets_at,
    (arrow_cast(said.time, 'Int64') - arrow_cast(newest.observed_at, 'Int64')) / 1000000.0 AS seconds,
    lag(said.quota_current) OVER later AS later_current,
    lag(said.time) OVER later AS later_time
  FROM said
  JOIN newest
    ON (said.service IS NOT DISTINCT FROM newest.service)
    AND (said.client IS NOT DISTINCT FROM newest.client)
    AND (said.quota_metric IS NOT DISTINCT FROM newest.quota_metric)
  WHERE said.time > newest.observed_at - INTERVAL '1 day' AND said.quota_current IS NOT NULL
  WINDOW later AS (
    PARTITION BY newest.service, newest.client, newest.quota_metric
    ORDER BY said.time DESC, said.quota_current DESC, said.resets_at DESC
  )
),
periods AS (
  SELECT
    *,
    sum(CASE WHEN quota_current > later_current OR resets_at <= later_time THEN 1 ELSE 0 END) OVER (
      PARTITION BY service, client, quota_metric
      ORDER BY time DESC, quota_current DESC, resets_at DESC
    ) AS resets_since
  FROM samples
),
trends AS (
  SELECT
    service, client, quota_metric,
    count(*) AS samples,
    max(quota_limit) AS quota_limit,
    max(resets_at) AS resets_at,
    regr_slope(quota_current, seconds) AS growth_per_second
  FROM periods
  WHERE resets_since = 0
  GROUP BY service, client, quota_metric
),
facts AS (
  SELECT
    newest.*,
    trends.samples,
    trends.quota_limit,
    trends.growth_per_second,
    coalesce(
      newest.said_resets_at,
      trends.resets_at,
      arrow_cast(
        arrow_cast(newest.observed_at, 'Int64') + CAST(newest.retry_after_s * 1000000 AS bigint),
        'Timestamp(Microsecond, Some("UTC"))'
      ),
      newest.observed_at + CASE
        WHEN newest.quota_metric LIKE '%per_second' THEN INTERVAL '1 second'
        WHEN newest.quota_metric LIKE '%per_minute' THEN INTERVAL '1 minute'
        WHEN newest.quota_metric LIKE '%per_hour' THEN INTERVAL '1 hour'
        WHEN newest.quota_metric LIKE '%per_day' THEN INTERVAL '1 day'
        WHEN newest.quota_metric LIKE '%per_month' THEN INTERVAL '1 month'
      END
    ) AS resets_at,
    (trends.quota_limit - newest.quota_current) / nullif(trends.growth_per_second, 0) AS seconds_left
  FROM newest
  LEFT JOIN trends
    ON (newest.service IS NOT DISTINCT FROM trends.service)
    AND (newest.client IS NOT DISTINCT FROM trends.client)
    AND (newest.quota_metric IS NOT DISTINCT FROM trends.quota_metric)
),
projections AS (
  SELECT
    *,
    CASE WHEN seconds_left > 0 AND growth_per_second > 0 AND seconds_left < 31536000
      THEN arrow_cast(
        arrow_cast(observed_at, 'Int64') + CAST(seconds_left * 1000000 AS bigint),
        'Timestamp(Microsecond, Some("UTC"))'
      )
    END AS would_be_exhausted
  FROM facts
)
SELECT
  service,
  client,
  quota_metric,
  CASE
    WHEN resets_at <= now() THEN 'reset'
    WHEN resets_at IS NULL AND observed_at < now() - INTERVAL '1 day' THEN 'stale'
    ELSE quota_level
  END AS state,
  quota_level,
  quota_current,
  quota_limit,
  quota_current / nullif(quota_limit, 0) AS usage,
  growth_per_second * 3600 AS growth_per_hour,
  CASE WHEN resets_at IS NULL OR would_be_exhausted < resets_at THEN would_be_exhausted END AS projected_exhaustion,
  resets_at,
  retry_after_s,
  observed_at,
  coalesce(samples, 0) AS samples
FROM projections
