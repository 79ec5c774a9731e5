/** How full a quota is, where it will be when it starts anew, and that in words. */

import type { QuotaRow } from "../api";
import { absolute } from "../core/time";
import { count, duration, fullTime, percent } from "../core/format";

/** Where a quota is going. */
export interface QuotaEnd {
  tone: "ok" | "warn" | "danger" | "none";
  text: string;
}

const LEVELS: Record<string, string> = {
  warning: "past its warning threshold",
  pause: "paused: calls wait for a person's confirmation",
  exhausted: "exhausted",
  exceeded: "exceeded",
};

/**
 * The filters for the events that report a quota. Quotas are as they are now, whatever time is chosen: one that was last
 * reported before that time leads to the day before its last report.
 */
export function quotaEvents(quota: QuotaRow, from: number): Record<string, string> {
  const filters = { service: quota.service ?? "", client: quota.client ?? "", quota_metric: quota.quota_metric ?? "" };
  const observed = Date.parse(quota.observed_at);
  return observed >= from ? filters : { ...filters, ...absolute(observed - 86400e3, observed + 1000) };
}

/** Levels that mean that calls are rejected already. */
const ENDED = ["pause", "exhausted", "exceeded"];

export function quotaEnd(quota: QuotaRow, now: number): QuotaEnd {
  if (quota.state === "reset") return { tone: "none", text: "Reset; nothing was reported since." };
  if (quota.state === "stale") return { tone: "none", text: "Not reported for a day." };
  const resets = quota.resets_at === null ? "" : `, resets ${until(quota.resets_at, now)}`;
  if (ENDED.includes(quota.state)) return { tone: "danger", text: `${capital(LEVELS[quota.state] ?? quota.state)}${resets}.` };
  if (quota.projected_exhaustion !== null && Date.parse(quota.projected_exhaustion) <= now) {
    return { tone: "danger", text: `Projected to be exhausted since ${fullTime(quota.projected_exhaustion).slice(5, 16)}; nothing was reported since${resets}.` };
  }
  if (quota.projected_exhaustion !== null) {
    return { tone: "danger", text: `Exhausted ${until(quota.projected_exhaustion, now)} at this pace${resets}.` };
  }
  const at = usageAtReset(quota);
  const reach = at === null ? "" : `; will reach ${percent(at)}`;
  return { tone: "warn", text: `${capital(LEVELS[quota.state] ?? quota.state)}${resets}${reach}.` };
}

/** The share that will be used at the reset, at the present pace. */
export function usageAtReset(quota: QuotaRow): number | null {
  const { quota_current: current, quota_limit: limit, growth_per_hour: growth, resets_at: resets } = quota;
  if (current === null || limit === null || limit <= 0 || growth === null || growth <= 0 || resets === null) return null;
  const hours = (Date.parse(resets) - Date.parse(quota.observed_at)) / 3600e3;
  return hours <= 0 ? null : Math.min(1, (current + growth * hours) / limit);
}

function until(time: string, now: number): string {
  const seconds = (Date.parse(time) - now) / 1000;
  const clock = fullTime(time).slice(seconds < 86400 ? 11 : 0, 16);
  return seconds <= 0 ? `at ${clock}` : `in ${duration(seconds)} (${clock})`;
}

function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

export function Gauge({ quota, now }: { quota: QuotaRow; now: number }) {
  const usage = quota.usage ?? (ENDED.includes(quota.state) ? 1 : null);
  const { tone, text } = quotaEnd(quota, now);
  const later = tone === "none" ? null : usageAtReset(quota);
  const shown = Math.min(1, Math.max(0, usage ?? 0));
  return (
    <div class="gauge" data-tone={tone}>
      <div class="gauge-track" role="meter" aria-valuemin={0} aria-valuemax={100} aria-valuenow={Math.round(shown * 100)}
        aria-valuetext={`${percent(usage)} used. ${text}`} aria-label={quota.quota_metric ?? "quota"}>
        {later !== null && later > shown && <span class="gauge-later" style={{ width: `${later * 100}%` }} />}
        <span class="gauge-fill" style={{ width: `${shown * 100}%` }} />
      </div>
      <span class="gauge-text">
        <b>{percent(usage)}</b>
        {(quota.quota_current !== null || quota.quota_limit !== null) && (
          <span class="muted"> {count(quota.quota_current)} of {count(quota.quota_limit)}</span>
        )}
      </span>
    </div>
  );
}
