/** Time ranges as the address holds them: RFC 3339, or relative to now (`-24h`, `now`). Pure. */

/** The two ends of a range, as they are written. */
export interface Range {
  from: string;
  to: string;
}

export const DEFAULT_RANGE: Range = { from: "-24h", to: "now" };

/** The ranges that the picker offers. */
export const PRESETS: readonly { from: string; label: string }[] = [
  { from: "-15m", label: "Last 15 minutes" },
  { from: "-1h", label: "Last hour" },
  { from: "-6h", label: "Last 6 hours" },
  { from: "-24h", label: "Last 24 hours" },
  { from: "-3d", label: "Last 3 days" },
  { from: "-7d", label: "Last 7 days" },
  { from: "-30d", label: "Last 30 days" },
];

const UNITS: Record<string, number> = { s: 1e3, m: 60e3, h: 3600e3, d: 86400e3, w: 7 * 86400e3 };

/** Milliseconds since 1970 that a text stands for; null when it is no time. */
export function parseTime(text: string, now: number): number | null {
  if (text === "now") return now;
  const relative = /^-(\d{1,6})([smhdw])$/.exec(text);
  if (relative) return now - Number(relative[1]) * (UNITS[relative[2] ?? ""] ?? 0);
  if (!/^\d{4}-\d{2}-\d{2}T/.test(text)) return null;
  const time = Date.parse(text);
  return Number.isNaN(time) ? null : time;
}

/** A range of which both ends are times and which is not empty; else the default. */
export function validRange(from: string | undefined, to: string | undefined, now: number): Range {
  const range = { from: from ?? DEFAULT_RANGE.from, to: to ?? DEFAULT_RANGE.to };
  const [start, end] = [parseTime(range.from, now), parseTime(range.to, now)];
  return start === null || end === null || start >= end ? DEFAULT_RANGE : range;
}

/** The ends in milliseconds. */
export function resolve(range: Range, now: number): { from: number; to: number } {
  const from = parseTime(range.from, now) ?? now - 86400e3;
  const to = parseTime(range.to, now) ?? now;
  return { from, to: Math.max(to, from + 1) };
}

/** An absolute range, to the second. */
export function absolute(from: number, to: number): Range {
  return { from: iso(from), to: iso(to) };
}

/** RFC 3339 without fractions that are zero. */
export function iso(time: number): string {
  return new Date(time).toISOString().replace(".000Z", "Z");
}

/** The range moved by its own length: -1 is earlier, 1 is later, though not past now. */
export function shifted(range: Range, direction: -1 | 1, now: number): Range {
  const { from, to } = resolve(range, now);
  const length = to - from;
  const end = Math.min(to + direction * length, now);
  return absolute(end - length, end);
}

/** Twice the range around its middle, though not past now. */
export function widened(range: Range, now: number): Range {
  const preset = PRESETS.findIndex((it) => it.from === range.from);
  if (range.to === "now" && preset >= 0) return { from: PRESETS[preset + 1]?.from ?? range.from, to: "now" };
  const { from, to } = resolve(range, now);
  const length = to - from;
  const end = Math.min(to + length / 2, now);
  return absolute(end - 2 * length, end);
}

/** Whether the range moves on with the clock. */
export function isLive(range: Range): boolean {
  return range.to === "now";
}

/** What the picker's button says. */
export function describe(range: Range, now: number): string {
  const preset = PRESETS.find((it) => it.from === range.from);
  if (range.to === "now" && preset) return preset.label;
  if (range.to === "now" && range.from.startsWith("-")) return `Last ${range.from.slice(1)}`;
  const { from, to } = resolve(range, now);
  return `${localTime(from)} – ${range.to === "now" ? "now" : localTime(to, sameDay(from, to))}`;
}

function sameDay(a: number, b: number): boolean {
  return new Date(a).toDateString() === new Date(b).toDateString();
}

/** A local time to the minute, or to the second when it has one. */
export function localTime(time: number, clockOnly = false): string {
  const date = new Date(time);
  const seconds = date.getSeconds() !== 0;
  const clock: Intl.DateTimeFormatOptions = {
    hour: "2-digit", minute: "2-digit", hourCycle: "h23", ...(seconds ? { second: "2-digit" } : {}),
  };
  const isThisYear = date.getFullYear() === new Date().getFullYear();
  const day: Intl.DateTimeFormatOptions = { month: "short", day: "numeric", ...(isThisYear ? {} : { year: "numeric" }) };
  return date.toLocaleString("en-GB", clockOnly ? clock : { ...day, ...clock });
}

/** The value of an `<input type="datetime-local">`, in local time. */
export function toInput(time: number): string {
  const date = new Date(time - new Date(time).getTimezoneOffset() * 60e3);
  return date.toISOString().slice(0, 16);
}
