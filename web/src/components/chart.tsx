/**
 * A time series on a canvas. Dragging selects a range, a click opens a bucket; the table beneath it does the same for
 * keyboards and screen readers.
 */

import { useEffect, useRef, useState } from "preact/hooks";
import uPlot from "uplot";
import { navigate, useApp, useRoute } from "../core/hooks";
import { absolute } from "../core/time";
import { compact, count, fullTime } from "../core/format";
import { cssColor } from "../core/theme";
import { visible } from "../core/visible";
import { Num } from "./parts";
import { cssVar } from "./style";
import type { ChartRange, Series } from "./chart-data";
import { bucketAt, bucketEnds, stacked, totals, zoomed } from "./chart-data";

export interface ChartProps {
  /** What the chart shows, for those who cannot see it. */
  label: string;
  time: readonly number[];
  range: ChartRange;
  series: readonly Series[];
  kind?: "bars" | "lines";
  height?: number;
  /** Formats values; numbers otherwise. */
  format?: (value: number) => string;
  /** The upper end of the axis, when it is known. */
  max?: number;
  /** Where a bucket leads. */
  bucketLink?: (from: string, to: string) => string;
  /** Names and totals under the chart. */
  legend?: boolean;
  /** Values that are no sums have no totals. */
  summable?: boolean;
}

export function TimeChart(props: ChartProps) {
  const { label, series, legend = true, summable = true } = props;
  const sums = totals(series);
  const isEmpty = series.every((each) => each.values.every((value) => value === null || value === 0));
  const summary = series.map((each, place) => (summable ? `${each.label} ${count(sums[place])}` : each.label)).join(", ");
  return (
    <figure class="chart">
      <figcaption class="visually-hidden">{`${label}: ${summary || "nothing"}. The table below has the numbers.`}</figcaption>
      {isEmpty ? <p class="chart-empty">Nothing in this time.</p> : <Canvas {...props} />}
      {legend && !isEmpty && (
        <ul class="legend">
          {series.map((each, place) => (sums[place] ?? 0) > 0 && (
            <li key={each.key}>
              <span class="swatch" style={cssVar(each.color)} aria-hidden="true" />
              <span>{each.label}</span>
              {summable && <Num value={sums[place]} href={each.href} label={each.label} />}
            </li>
          ))}
        </ul>
      )}
      {!isEmpty && <ChartTable {...props} />}
    </figure>
  );
}

function Canvas(props: ChartProps) {
  const { theme } = useApp();
  const { here } = useRoute();
  const box = useRef<HTMLDivElement>(null);
  const tip = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const latest = useRef({ props, here });
  latest.current = { props, here };
  const shape = `${theme}|${props.kind}|${props.max}|${props.series.map((each) => `${each.key} ${each.color}`).join()}`;

  useEffect(() => {
    const target = box.current;
    if (target === null) return undefined;
    const options = plotOptions(latest, tip, target.clientWidth);
    const made = new uPlot(options, plotData(latest.current.props), target);
    plot.current = made;
    const observer = new ResizeObserver(() => {
      if (target.clientWidth > 0) made.setSize({ width: target.clientWidth, height: options.height });
    });
    observer.observe(target);
    return () => {
      observer.disconnect();
      made.destroy();
      plot.current = null;
    };
  }, [shape]);

  useEffect(() => {
    plot.current?.setData(plotData(props));
  }, [props.time, props.series]);

  return (
    <div class="chart-box" aria-hidden="true" style={{ minHeight: `${props.height ?? 200}px` }}>
      <div ref={box} />
      <div ref={tip} class="chart-tip" hidden />
    </div>
  );
}

type Latest = { current: { props: ChartProps; here: (query: Record<string, string>) => string } };

/** Buckets are drawn around their middle. Of a stack the highest comes first, so that lower ones cover its foot. */
function plotData({ time, range, series, kind = "bars" }: ChartProps): uPlot.AlignedData {
  const middles = time.map((start) => start + range.step_s / 2);
  if (kind === "lines") return [middles, ...series.map((each) => [...each.values])];
  return [middles, ...stacked(series).reverse()];
}

function plotOptions(latest: Latest, tip: { current: HTMLDivElement | null }, width: number): uPlot.Options {
  const { series, kind = "bars", height = 200, max } = latest.current.props;
  const grid = { stroke: cssColor("--grid"), width: 1 };
  const axis = { stroke: cssColor("--muted"), font: "11px system-ui, sans-serif", grid, ticks: { ...grid, size: 4 } };
  const format = (value: number) => (latest.current.props.format ?? compact)(value);
  const drawn = kind === "lines" ? series : [...series].reverse();
  return {
    width: Math.max(width, 50),
    height,
    padding: [8, 16, 0, 0],
    legend: { show: false },
    scales: {
      x: { time: true, range: () => ends(latest.current.props) },
      y: { range: (_, __, top) => [0, max ?? Math.max(top * 1.08, 1)] },
    },
    axes: [
      { ...axis, size: 28, values: (_, splits, __, ___, increment) => splits.map((at) => axisTime(at, increment)) },
      { ...axis, size: 46, values: (_, splits) => splits.map(format), incrs: INCREMENTS, space: height < 130 ? 20 : 34 },
    ],
    series: [{}, ...drawn.map((each) => seriesOptions(each, kind))],
    cursor: { y: false, points: { show: kind === "lines" }, drag: { x: true, y: false, setScale: false } },
    hooks: {
      setCursor: [(plot) => showTip(plot, tip.current, latest.current.props)],
      setSelect: [(plot) => select(plot, latest.current)],
      ready: [(plot) => openOnClick(plot, latest), (plot) => selectByTouch(plot, latest)],
    },
  };
}

const INCREMENTS = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, ...Array.from({ length: 12 }, (_, power) => [1, 2, 5].map((it) => it * 10 ** power)).flat()];

function ends({ time, range }: ChartProps): [number, number] {
  const first = time[0] ?? 0;
  return [first, (time.at(-1) ?? first) + range.step_s];
}

function seriesOptions(each: Series, kind: "bars" | "lines"): uPlot.Series {
  const color = cssColor(each.color);
  if (kind === "lines") return { stroke: color, width: 2, spanGaps: true, points: { show: false } };
  const paths = uPlot.paths.bars?.({ size: [0.92, 60], gap: 0 });
  return { stroke: color, fill: color, width: 0, points: { show: false }, ...(paths ? { paths } : {}) };
}

const WEEKDAYS = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];

/** Days for long ranges, the clock for short ones; midnight is always a day. */
function axisTime(seconds: number, increment: number): string {
  const date = new Date(seconds * 1000);
  const isMidnight = date.getHours() === 0 && date.getMinutes() === 0;
  if (increment >= 86400 || isMidnight) return `${WEEKDAYS[date.getDay()]} ${date.getDate()}`;
  const clock = fullTime(date.getTime()).slice(11);
  return increment < 60 ? clock : clock.slice(0, 5);
}

function select(plot: uPlot, { props, here }: Latest["current"]): void {
  const { left, width } = plot.select;
  if (width <= 0) return;
  const chosen = zoomed(plot.posToVal(left, "x"), plot.posToVal(left + width, "x"), props.time, props.range.step_s);
  plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
  if (chosen !== null && width >= 6) {
    navigate(here({ ...absolute(chosen.from * 1000, chosen.to * 1000) }));
  }
}

/** A press and a release in one place opens the bucket. */
function openOnClick(plot: uPlot, latest: Latest): void {
  let pressed = Number.NaN;
  plot.over.addEventListener("mousedown", (event) => (pressed = event.clientX));
  plot.over.addEventListener("click", (event) => {
    const { props } = latest.current;
    if (props.bucketLink === undefined || Math.abs(event.clientX - pressed) >= 6) return;
    const start = props.time[bucketAt(plot.posToVal(event.offsetX, "x"), props.time, props.range.step_s)];
    if (start !== undefined) navigate(props.bucketLink(...bucketEnds(start, props.range)));
  });
}

/** The movement in pixels from which a touch selects a range, or scrolls the page. */
const TOUCH_SLOP = 8;

/**
 * A finger that moves sideways selects a range, as a mouse does; one that moves up or down scrolls the page, for which the
 * area has `touch-action: pan-y`. A tap is a click.
 */
function selectByTouch(plot: uPlot, latest: Latest): void {
  let [finger, start] = [-1, 0];
  const end = (event: PointerEvent, isDone: boolean) => {
    if (event.pointerId !== finger) return;
    finger = -1;
    if (isDone) select(plot, latest.current);
    else plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
  };
  plot.over.addEventListener("pointerdown", (event) => {
    if (event.pointerType !== "touch" || !event.isPrimary) return;
    [finger, start] = [event.pointerId, at(plot, event)];
    plot.over.setPointerCapture(finger);
  });
  plot.over.addEventListener("pointermove", (event) => {
    if (event.pointerId !== finger) return;
    const [left, right] = [start, at(plot, event)].sort((a, b) => a - b) as [number, number];
    const width = right - left < TOUCH_SLOP ? 0 : right - left;
    plot.setSelect({ left, top: 0, width, height: width === 0 ? 0 : plot.over.clientHeight }, false);
  });
  plot.over.addEventListener("pointerup", (event) => end(event, true));
  plot.over.addEventListener("pointercancel", (event) => end(event, false));
}

/** Where a pointer is within the plot, in pixels from its left end. */
function at(plot: uPlot, event: PointerEvent): number {
  const box = plot.over.getBoundingClientRect();
  return Math.min(box.width, Math.max(0, event.clientX - box.left));
}

function showTip(plot: uPlot, tip: HTMLDivElement | null, props: ChartProps): void {
  if (tip === null) return;
  const left = plot.cursor.left ?? -1;
  const place = left < 0 ? -1 : bucketAt(plot.posToVal(left, "x"), props.time, props.range.step_s);
  const start = props.time[place];
  tip.hidden = start === undefined;
  if (start === undefined) return;
  const format = props.format ?? count;
  const rows = props.series.filter((each) => (each.values[place] ?? 0) !== 0).reverse();
  tip.replaceChildren(
    element("p", "chart-tip-time", `${fullTime(start * 1000).slice(0, 16)} – ${fullTime((start + props.range.step_s) * 1000).slice(11, 16)}`),
    ...rows.map((each) => tipRow(each.color, each.label, format(each.values[place] ?? 0))),
    ...(rows.length === 0 ? [element("p", "muted", "nothing")] : []),
  );
  const offset = plot.over.offsetLeft + left;
  const isRight = left > plot.over.clientWidth / 2;
  tip.style.left = isRight ? "auto" : `${offset + 12}px`;
  tip.style.right = isRight ? `${(tip.parentElement?.clientWidth ?? 0) - offset + 12}px` : "auto";
}

function tipRow(color: string, label: string, value: string): HTMLElement {
  const row = element("p", "chart-tip-row", "");
  const swatch = element("span", "swatch", "");
  swatch.style.setProperty("--color", `var(${color})`);
  row.append(swatch, element("span", "", label), element("b", "", value));
  return row;
}

function element(name: string, className: string, text: string): HTMLElement {
  const made = document.createElement(name);
  made.className = className;
  made.textContent = visible(text);
  return made;
}

/** A value as text; a dash where nothing was reported. */
function cell(value: number | null | undefined, format: (value: number) => string): string {
  return value === null || value === undefined ? "–" : format(value);
}

/** The same numbers as a table; each time leads where a drag or a click would. */
function ChartTable({ label, time, range, series, format = count, bucketLink }: ChartProps) {
  const { here } = useRoute();
  const [isOpen, setOpen] = useState(false);
  const rows = time.map((_, place) => place).filter((place) => series.some((each) => (each.values[place] ?? 0) !== 0));
  return (
    <details class="chart-table" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>Numbers as a table</summary>
      {isOpen && (
        <div class="scroll" tabIndex={0} role="region" aria-label={`${label}, as a table`}>
          <table>
            <thead>
              <tr>
                <th scope="col">From</th>
                {series.map((each) => <th key={each.key} scope="col" class="right">{each.label}</th>)}
                <th scope="col">Show</th>
              </tr>
            </thead>
            <tbody>
              {rows.map((place) => {
                const start = time[place] ?? 0;
                const [from, to] = [start * 1000, (start + range.step_s) * 1000];
                return (
                  <tr key={place}>
                    <th scope="row">{fullTime(from).slice(0, 16)}</th>
                    {series.map((each) => <td key={each.key} class="right">{cell(each.values[place], format)}</td>)}
                    <td>
                      <a href={here({ ...absolute(from, to) })} aria-label={`Zoom to ${fullTime(from)}`}>zoom</a>
                      {bucketLink !== undefined && (
                        <> <a href={bucketLink(...bucketEnds(start, range))} aria-label={`Events of ${fullTime(from)}`}>events</a></>
                      )}
                    </td>
                  </tr>
                );
              })}
            </tbody>
          </table>
        </div>
      )}
    </details>
  );
}
