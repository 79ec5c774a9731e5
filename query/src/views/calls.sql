-- Every call once: calls and their durations by minute, service and operation; a call that both sides report counts at the server
-- calls: The number of calls
-- failures: The number of failed calls, hidden failures included
--
-- Calls whose outcome is not known yet are left out. Filters on minute and service skip files. `error_rates` has the
-- rates and percentiles of each row; for longer periods use histogram_quantile over sums of these columns.
WITH sums AS (
  SELECT
    minute, service, environment, operation,
    coalesce(span_kind IN ('client', 'producer', 'internal'), false) AS is_caller,
    sum(calls) AS calls,
    sum(failures) AS failures,
    sum(hidden_failures) AS hidden_failures,
    sum(unverified_calls) AS unverified_calls,
    sum(timed_calls) AS timed_calls,
    sum(duration_sum_us) AS duration_sum_us,
    sum(took_at_most_1ms) AS took_at_most_1ms,
    sum(took_at_most_2_5ms) AS took_at_most_2_5ms,
    sum(took_at_most_5ms) AS took_at_most_5ms,
    sum(took_at_most_10ms) AS took_at_most_10ms,
    sum(took_at_most_25ms) AS took_at_most_25ms,
    sum(took_at_most_50ms) AS took_at_most_50ms,
    sum(took_at_most_100ms) AS took_at_most_100ms,
    sum(took_at_most_250ms) AS took_at_most_250ms,
    sum(took_at_most_500ms) AS took_at_most_500ms,
    sum(took_at_most_1s) AS took_at_most_1s,
    sum(took_at_most_2_5s) AS took_at_most_2_5s,
    sum(took_at_most_5s) AS took_at_most_5s,
    sum(took_at_most_10s) AS took_at_most_10s,
    sum(took_at_most_30s) AS took_at_most_30s
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
  minute, service, environment, operation, calls, failures, hidden_failures, unverified_calls, timed_calls,
  duration_sum_us, took_at_most_1ms, took_at_most_2_5ms, took_at_most_5ms, took_at_most_10ms, took_at_most_25ms,
  took_at_most_50ms, took_at_most_100ms, took_at_most_250ms, took_at_most_500ms, took_at_most_1s, took_at_most_2_5s,
  took_at_most_5s, took_at_most_10s, took_at_most_30s
FROM once
