/** What a chart draws, worked out from series. Pure. */

import { iso } from "../core/time";

export interface Series {
  key: string;
  label: string;
  values: readonly (number | null)[];
  /** The name of a CSS variable. */
  color: string;
  /** Where its name leads. */
  href?: string | undefined;
}

/** Running sums, so that each series stands on those before it. */
export function stacked(series: readonly Series[]): number[][] {
  const sums: number[][] = [];
  for (const each of series) {
    const below = sums.at(-1);
    sums.push(each.values.map((value, place) => (value ?? 0) + (below?.[place] ?? 0)));
  }
  return sums;
}

/** The sum of each series over all time. */
export function totals(series: readonly Series[]): number[] {
  return series.map((each) => each.values.reduce<number>((sum, value) => sum + (value ?? 0), 0));
}

/** A selection in seconds, widened to whole buckets within the chart; null when it is everything or nothing. */
export function zoomed(min: number, max: number, time: readonly number[], step: number): { from: number; to: number } | null {
  const first = time[0];
  const last = time.at(-1);
  if (first === undefined || last === undefined || max <= min) return null;
  const from = Math.max(first, Math.floor(min / step) * step);
  const to = Math.min(last + step, Math.ceil(max / step) * step);
  return to <= from || (from <= first && to >= last + step) ? null : { from, to };
}

/** The range of a chart: its ends, if it has some, and the width of a bucket in seconds. */
export interface ChartRange {
  from?: string;
  to?: string;
  step_s: number;
}

/** The ends of the bucket that begins at a time. It holds nothing from outside the range, so the range may cut it. */
export function bucketEnds(start: number, { from, to, step_s }: ChartRange): [string, string] {
  const [first, end] = [start * 1000, (start + step_s) * 1000];
  return [
    from !== undefined && Date.parse(from) > first ? from : iso(first),
    to !== undefined && Date.parse(to) < end ? to : iso(end),
  ];
}

/** The bucket that a time falls into; -1 when none does. */
export function bucketAt(seconds: number, time: readonly number[], step: number): number {
  const first = time[0];
  if (first === undefined) return -1;
  const place = Math.floor((seconds - first) / step);
  return place >= 0 && place < time.length ? place : -1;
}
