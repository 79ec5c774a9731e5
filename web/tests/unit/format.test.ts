import assert from "node:assert/strict";
import { test } from "node:test";
import { bytes, change, compact, count, duration, fullTime, milliseconds, percent, plural, ratio, relative } from "../../src/core/format";

const NOW = Date.parse("2026-11-18T12:00:00Z");

test("numbers", () => {
  assert.deepEqual([0, 7, 1234, 35.25, 1_234_567, 2.5e9].map(count), ["0", "7", "1,234", "35.25", "1.23 M", "2.5 G"]);
  assert.deepEqual([null, undefined, Number.NaN].map((value) => count(value)), ["–", "–", "–"]);
  assert.deepEqual([0, 0.5, 950, 1200, 20_000, 3.4e6].map(compact), ["0", "0.5", "950", "1.2k", "20k", "3.4M"]);
  assert.deepEqual([plural(1, "event"), plural(0, "event"), plural(1200, "event")], ["1 event", "0 events", "1,200 events"]);
});

test("a share is never rounded to nothing, or to everything", () => {
  assert.deepEqual([0, 0.0004, 0.071, 0.0712, 0.46, 0.9996, 1].map((share) => percent(share)), ["0\u00a0%", "<\u00a00.1\u00a0%", "7.1\u00a0%", "7.1\u00a0%", "46\u00a0%", ">\u00a099.9\u00a0%", "100\u00a0%"]);
  assert.deepEqual([percent(null), percent(ratio(1, 0)), percent(ratio(1, 4))], ["–", "–", "25\u00a0%"]);
});

test("changes", () => {
  assert.deepEqual([change(134, 100), change(50, 100), change(100, 100), change(5, 0), change(2000, 100)], ["+34 %", "−50 %", "as before", null, "20 times as many"]);
});

test("durations", () => {
  assert.deepEqual([0.25, 7.25, 850, 3400, 59_900, 125_000].map((value) => milliseconds(value)), ["250 µs", "7.3 ms", "850 ms", "3.4 s", "59.9 s", "2 min 5 s"]);
  assert.deepEqual([0, 45, 60, 3 * 3600 + 1200, 187_200].map(duration), ["0 s", "45 s", "1 min", "3 h 20 min", "2 d 4 h"]);
});

test("times", () => {
  assert.equal(relative("2026-11-18T11:57:00Z", NOW), "3 min ago");
  assert.equal(relative("2026-11-18T14:00:00Z", NOW), "in 2 h");
  assert.equal(relative("2026-11-18T11:59:58Z", NOW), "just now");
  assert.equal(relative("no time", NOW), "–");
  assert.equal(fullTime("2026-11-18T09:05:07.042Z", true), "2026-11-18 09:05:07.042");
  assert.equal(fullTime("no time"), "no time");
});

test("sizes", () => {
  assert.deepEqual([0, 900, 2048, 16 * 1024 ** 2, 1.5 * 1024 ** 3].map((size) => bytes(size)), ["0 B", "900 B", "2 KiB", "16 MiB", "1.5 GiB"]);
});
