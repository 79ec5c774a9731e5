/** Numbers, shares, durations and times as people read them. Pure. */

/** `1,234`; from a million on `1.23 M`. Nothing is a dash. */
export function count(value: number | null | undefined): string {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  if (Math.abs(value) >= 1e9) return `${trim(value / 1e9, 2)} G`;
  if (Math.abs(value) >= 1e6) return `${trim(value / 1e6, 2)} M`;
  return value.toLocaleString("en-US", { maximumFractionDigits: Number.isInteger(value) ? 0 : 2 });
}

/** For axes: `1.2k`. */
export function compact(value: number): string {
  const size = Math.abs(value);
  if (size >= 1e9) return `${trim(value / 1e9, 1)}G`;
  if (size >= 1e6) return `${trim(value / 1e6, 1)}M`;
  if (size >= 1e3) return `${trim(value / 1e3, 1)}k`;
  return trim(value, size < 1 ? 2 : 1);
}

/** `12.3 %` of a part; a share that is not 0 is never shown as 0. */
export function percent(share: number | null | undefined): string {
  if (share === null || share === undefined || !Number.isFinite(share)) return "–";
  const value = share * 100;
  if (value > 0 && value < 0.1) return "<\u00a00.1\u00a0%";
  if (value < 100 && value > 99.9) return ">\u00a099.9\u00a0%";
  return `${trim(value, value >= 10 && value < 99.9 ? 0 : 1)}\u00a0%`;
}

/** A part of a whole; null when the whole is nothing. */
export function ratio(part: number, whole: number): number | null {
  return whole > 0 ? part / whole : null;
}

/** `+34 %` against what was before; null when there is nothing to compare with. */
export function change(now: number, before: number): string | null {
  if (before <= 0) return null;
  const share = Math.round(((now - before) / before) * 100);
  if (share >= 1000) return `${trim(now / before, 0)} times as many`;
  return share === 0 ? "as before" : `${share > 0 ? "+" : "−"}${Math.abs(share)} %`;
}

/** `850 µs`, `12 ms`, `3.4 s`, `2 min 5 s`. */
export function milliseconds(value: number | null | undefined): string {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  if (value < 1) return `${Math.round(value * 1000)} µs`;
  if (value < 1000) return `${trim(value, value < 10 ? 1 : 0)} ms`;
  if (value < 60e3) return `${trim(value / 1000, value < 10e3 ? 2 : 1)} s`;
  return duration(value / 1000);
}

/** `45 s`, `12 min`, `3 h 20 min`, `2 d 4 h`: the two largest units. */
export function duration(seconds: number): string {
  const whole = Math.max(0, Math.round(seconds));
  const parts: [number, string][] = [
    [Math.floor(whole / 86400), "d"],
    [Math.floor(whole / 3600) % 24, "h"],
    [Math.floor(whole / 60) % 60, "min"],
    [whole % 60, "s"],
  ];
  const first = parts.findIndex(([size]) => size > 0);
  if (first < 0) return "0 s";
  return parts.slice(first, first + 2).filter(([size]) => size > 0).map(([size, unit]) => `${size} ${unit}`).join(" ");
}

/** `3 min ago`, `in 2 h`, `just now`. */
export function relative(time: string | number | null | undefined, now: number): string {
  const at = typeof time === "string" ? Date.parse(time) : (time ?? Number.NaN);
  if (Number.isNaN(at)) return "–";
  const seconds = Math.abs(now - at) / 1000;
  if (seconds < 5) return "just now";
  const largest = duration(seconds).split(" ").slice(0, 2).join(" ");
  return at > now ? `in ${largest}` : `${largest} ago`;
}

export function bytes(value: number | null | undefined): string {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let size = value;
  let unit = 0;
  while (size >= 1024 && unit < units.length - 1) {
    size /= 1024;
    unit += 1;
  }
  return `${trim(size, size < 10 && unit > 0 ? 1 : 0)} ${units[unit]}`;
}

/** A local date and time to the second, or to the millisecond. */
export function fullTime(time: string | number, millis = false): string {
  const date = new Date(time);
  if (Number.isNaN(date.getTime())) return String(time);
  const pad = (value: number, width = 2) => String(value).padStart(width, "0");
  const day = `${date.getFullYear()}-${pad(date.getMonth() + 1)}-${pad(date.getDate())}`;
  const clock = `${pad(date.getHours())}:${pad(date.getMinutes())}:${pad(date.getSeconds())}`;
  return `${day} ${clock}${millis ? `.${pad(date.getMilliseconds(), 3)}` : ""}`;
}

/** One and many: `1 event`, `2 events`. */
export function plural(value: number, one: string, many = `${one}s`): string {
  return `${count(value)} ${value === 1 ? one : many}`;
}

function trim(value: number, digits: number): string {
  const text = value.toFixed(digits);
  return digits > 0 ? text.replace(/\.?0+$/, "") : text;
}
