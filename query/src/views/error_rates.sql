-- Error rates and durations of calls by minute, service and operation; a call that both sides report counts once, at the server
-- calls: The number of calls
-- failures: The number of failed calls, hidden failures included
-- error_rate: The share of calls that failed, from 0 to 1
-- hidden_share: The share of failures that were hidden, from 0 to 1
-- unverified_calls: The number of tool calls that count as ok although no content of their reply was captured
-- mean_ms: The mean duration of a call, in milliseconds
-- p50_ms: The median duration of a call in milliseconds, estimated from the histogram
-- p95_ms: The 95th percentile of durations in milliseconds, estimated from the histogram
-- p99_ms: The 99th percentile of durations in milliseconds, estimated from the histogram
--
-- Filters on minute and service skip files. For longer periods, sum calls and failures; percentiles cannot be
-- summed: use histogram_quantile over sums of the columns of `traffic`.
WITH sums AS (
  SELECT
    minute, service, environment, operation,
    coalesce(span_kind IN ('client', 'producer', 'internal'), false) AS is_caller,
    sum(calls) AS calls,
    sum(failures) AS failures,
    sum(hidden_failures) AS hidden_failures,
    sum(coalesce(unverified_calls, 0)) AS unverified_calls,
    sum(timed_calls) AS timed_calls,
    sum(duration_sum_us) AS duration_sum_us,
    sum(took_at_most_1ms) AS b1, sum(took_at_most_2_5ms) AS b2, sum(took_at_most_5ms) AS b3,
    sum(took_at_most_10ms) AS b4, sum(took_at_most_25ms) AS b5, sum(took_at_most_50ms) AS b6,
    sum(took_at_most_100ms) AS b7, sum(took_at_most_250ms) AS b8, sum(took_at_most_500ms) AS b9,
    sum(took_at_most_1s) AS b10, sum(took_at_most_2_5s) AS b11, sum(took_at_most_5s) AS b12,
    sum(took_at_most_10s) AS b13, sum(took_at_most_30s) AS b14
  FROM traffic
  WHERE outcome <> 'pending'
  GROUP BY minute, service, environment, operation, is_caller
),
answered AS (
  SELECT DISTINCT minute, coalesce(operation, '') AS operation
  FROM traffic
  WHERE span_kind IS NULL OR span_kind NOT IN ('client', 'producer', 'internal')
),
once AS (
  SELECT * FROM sums WHERE NOT is_caller
  UNION ALL
  SELECT sums.*
  FROM sums
  LEFT ANTI JOIN answered ON sums.minute = answered.minute AND coalesce(sums.operation, '') = answered.operation
  WHERE sums.is_caller
)
SELECT
  minute,
  service,
  environment,
  operation,
  calls,
  failures,
  hidden_failures,
  failures / CAST(nullif(calls, 0) AS double precision) AS error_rate,
  hidden_failures / CAST(nullif(failures, 0) AS double precision) AS hidden_share,
  unverified_calls,
  timed_calls,
  duration_sum_us / 1000.0 / nullif(timed_calls, 0) AS mean_ms,
  histogram_quantile(0.5, timed_calls, b1, b2, b3, b4, b5, b6, b7, b8, b9, b10, b11, b12, b13, b14) AS p50_ms,
  histogram_quantile(0.95, timed_calls, b1, b2, b3, b4, b5, b6, b7, b8, b9, b10, b11, b12, b13, b14) AS p95_ms,
  histogram_quantile(0.99, timed_calls, b1, b2, b3, b4, b5, b6, b7, b8, b9, b10, b11, b12, b13, b14) AS p99_ms
FROM once
