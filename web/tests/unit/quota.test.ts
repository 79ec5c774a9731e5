import assert from "node:assert/strict";
import { test } from "node:test";
import type { QuotaRow } from "../../src/api";
import { quotaEnd, quotaEvents, usageAtReset } from "../../src/components/gauge";

const NOW = Date.parse("2026-11-18T12:00:00Z");
const QUOTA: QuotaRow = {
  service: "ledger", client: "a", quota_metric: "requests_per_day", state: "warning", quota_level: "warning", quota_current: 600, quota_limit: 1000,
  usage: 0.6, growth_per_hour: 50, projected_exhaustion: null, resets_at: "2026-11-18T16:00:00Z", retry_after_s: null, observed_at: "2026-11-18T12:00:00Z", samples: 9,
};

test("a quota that lasts says how full it will be", () => {
  assert.equal(usageAtReset(QUOTA), 0.8);
  assert.deepEqual(quotaEnd(QUOTA, NOW), { tone: "warn", text: "Past its warning threshold, resets in 4 h (16:00); will reach 80\u00a0%." });
});

test("a quota that does not last says when it is exhausted", () => {
  const end = quotaEnd({ ...QUOTA, projected_exhaustion: "2026-11-18T14:30:00Z" }, NOW);
  assert.deepEqual(end, { tone: "danger", text: "Exhausted in 2 h 30 min (14:30) at this pace, resets in 4 h (16:00)." });
});

test("a projection that has passed without news is no more than that", () => {
  const end = quotaEnd({ ...QUOTA, projected_exhaustion: "2026-11-18T11:30:00Z", resets_at: null }, NOW);
  assert.deepEqual(end, { tone: "danger", text: "Projected to be exhausted since 11-18 11:30; nothing was reported since." });
});

test("exhausted, reset and stale quotas say so", () => {
  assert.equal(quotaEnd({ ...QUOTA, state: "exhausted" }, NOW).tone, "danger");
  assert.equal(quotaEnd({ ...QUOTA, state: "reset" }, NOW).tone, "none");
  assert.equal(quotaEnd({ ...QUOTA, state: "stale" }, NOW).tone, "none");
  assert.equal(usageAtReset({ ...QUOTA, quota_limit: null }), null);
  assert.equal(usageAtReset({ ...QUOTA, growth_per_hour: 5000 }), 1);
});

test("a quota leads to events also when it was not reported in the chosen time", () => {
  const filters = { service: "ledger", client: "a", quota_metric: "requests_per_day" };
  assert.deepEqual(quotaEvents(QUOTA, NOW - 1000), filters);
  assert.deepEqual(quotaEvents({ ...QUOTA, client: null }, NOW + 1000), { ...filters, client: "", from: "2026-11-17T12:00:00Z", to: "2026-11-18T12:00:01Z" });
});
