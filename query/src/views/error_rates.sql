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
-- summed: use histogram_quantile over sums of the columns of `calls`.
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
  coalesce(unverified_calls, 0) AS unverified_calls,
  timed_calls,
  duration_sum_us / 1000.0 / nullif(timed_calls, 0) AS mean_ms,
  histogram_quantile(0.5, timed_calls, took_at_most_1ms, took_at_most_2_5ms, took_at_most_5ms, took_at_most_10ms,
    took_at_most_25ms, took_at_most_50ms, took_at_most_100ms, took_at_most_250ms, took_at_most_500ms, took_at_most_1s,
    took_at_most_2_5s, took_at_most_5s, took_at_most_10s, took_at_most_30s) AS p50_ms,
  histogram_quantile(0.95, timed_calls, took_at_most_1ms, took_at_most_2_5ms, took_at_most_5ms, took_at_most_10ms,
    took_at_most_25ms, took_at_most_50ms, took_at_most_100ms, took_at_most_250ms, took_at_most_500ms, took_at_most_1s,
    took_at_most_2_5s, took_at_most_5s, took_at_most_10s, took_at_most_30s) AS p95_ms,
  histogram_quantile(0.99, timed_calls, took_at_most_1ms, took_at_most_2_5ms, took_at_most_5ms, took_at_most_10ms,
    took_at_most_25ms, took_at_most_50ms, took_at_most_100ms, took_at_most_250ms, took_at_most_500ms, took_at_most_1s,
    took_at_most_2_5s, took_at_most_5s, took_at_most_10s, took_at_most_30s) AS p99_ms
FROM calls
