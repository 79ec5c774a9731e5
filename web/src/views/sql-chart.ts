/** What of a result can be drawn, and how. Pure. */

import type { SqlResult } from "../api";
import type { Series } from "../components/chart-data";
import { CATEGORIES, categoryColor } from "../core/words";

export interface TimeDrawing {
  kind: "time";
  time: number[];
  step: number;
  series: Series[];
}

export interface BarsDrawing {
  kind: "bars";
  unit: string;
  bars: { label: string; value: number }[];
}

const COLORS = ["--accent-fill", "--cat-rate-limit", "--cat-conflict", "--fault-upstream", "--cat-token", "--cat-permission",
  "--cat-protocol", "--cat-internal", "--cat-schema", "--cat-unknown"];
const MOST_BUCKETS = 2000;
const MOST_SERIES = 10;
const MOST_BARS = 60;

type Columns = SqlResult["columns"];

/** A drawing; null when there is nothing to draw: no number, or nothing to draw it over. */
export function drawing(result: SqlResult): TimeDrawing | BarsDrawing | null {
  const { columns, rows } = result;
  if (rows.length === 0) return null;
  const numbers = columns.filter((column) => isNumber(column) && rows.some((row) => toNumber(row[column.name]) !== null));
  if (numbers.length === 0) return null;
  const time = columns.find((column) => /^(timestamp|date)/i.test(column.type));
  const texts = columns.filter((column) => /^(text|character|varchar|boolean)/i.test(column.type));
  if (time !== undefined) {
    const drawn = overTime(result, time.name, numbers, texts);
    if (drawn !== null) return drawn;
  }
  return texts.length > 0 ? asBars(result, texts, numbers) : null;
}

function isNumber(column: Columns[number]): boolean {
  return /^(smallint|int|bigint|real|double|numeric|decimal|float|oid)/i.test(column.type);
}

function toNumber(value: unknown): number | null {
  if (typeof value === "number") return value;
  return typeof value === "string" && value !== "" && Number.isFinite(Number(value)) ? Number(value) : null;
}

/** Rows by time: a series for each number, or for each value of a text when there is one number. */
function overTime(result: SqlResult, time: string, numbers: Columns, texts: Columns): TimeDrawing | null {
  const at = (row: Record<string, unknown>) => Math.floor(Date.parse(utc(row[time])) / 1000);
  const times = [...new Set(result.rows.map(at).filter(Number.isFinite))].sort((a, b) => a - b);
  const [first, last] = [times[0], times.at(-1)];
  if (first === undefined || last === undefined || times.length < 2) return null;
  const step = times.slice(1).reduce((least, each, place) => Math.min(least, each - (times[place] ?? each)), last - first);
  const buckets = Math.round((last - first) / step) + 1;
  if (buckets > MOST_BUCKETS) return null;
  const [number] = numbers;
  const [text] = texts;
  const pivots = text !== undefined && numbers.length === 1 && times.length < result.rows.length;
  const names = pivots ? ordered(new Set(result.rows.map((row) => String(row[text.name] ?? "none")))) : numbers.map((each) => each.name);
  const series = names.slice(0, MOST_SERIES).map((name, place): Series => {
    const values = new Array<number | null>(buckets).fill(null);
    for (const row of result.rows) {
      if (pivots && String(row[text.name] ?? "none") !== name) continue;
      const bucket = Math.round((at(row) - first) / step);
      const value = toNumber(row[pivots ? (number?.name ?? "") : name]);
      if (value !== null && bucket in values) values[bucket] = (values[bucket] ?? 0) + value;
    }
    return { key: name, label: name, values, color: seriesColor(name, place) };
  });
  return { kind: "time", time: Array.from({ length: buckets }, (_, bucket) => first + bucket * step), step, series };
}

/** Categories are stacked in the same order everywhere; other names in the order in which they come. */
function ordered(names: Iterable<string>): string[] {
  const place = (name: string) => CATEGORIES.findIndex((category) => category === name);
  return [...names].sort((a, b) => place(a) - place(b));
}

/** A category has its own colour everywhere, also in lower case. */
function seriesColor(name: string, place: number): string {
  const category = CATEGORIES.find((each) => each === name.toUpperCase());
  if (category !== undefined) return categoryColor(category);
  return name.startsWith("hidden") ? "--hidden-fill" : (COLORS[place % COLORS.length] ?? "--accent-fill");
}

/** Times without a zone are in UTC, as everything that is stored. */
function utc(value: unknown): string {
  const text = String(value);
  return /(Z|[+-]\d{2}:?\d{2})$/.test(text) || !text.includes("T") ? text : `${text}Z`;
}

function asBars(result: SqlResult, texts: Columns, numbers: Columns): BarsDrawing | null {
  const [number] = numbers;
  if (number === undefined) return null;
  const bars = result.rows.slice(0, MOST_BARS).flatMap((row) => {
    const value = toNumber(row[number.name]);
    return value === null ? [] : [{ label: texts.map((text) => String(row[text.name] ?? "none")).join(" · "), value }];
  });
  return bars.length === 0 ? null : { kind: "bars", unit: number.name, bars };
}
