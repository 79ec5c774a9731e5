import assert from "node:assert/strict";
import { test } from "node:test";
import { absolute, DEFAULT_RANGE, describe, isLive, parseTime, resolve, shifted, validRange, widened } from "../../src/core/time";

const NOW = Date.parse("2026-11-18T12:00:00Z");
const HOUR = 3600e3;

test("times are relative to now, or RFC 3339", () => {
  assert.equal(parseTime("now", NOW), NOW);
  assert.equal(parseTime("-90s", NOW), NOW - 90e3);
  assert.equal(parseTime("-7d", NOW), NOW - 7 * 24 * HOUR);
  assert.equal(parseTime("2026-11-18T10:00:00Z", NOW), NOW - 2 * HOUR);
  assert.equal(parseTime("2026-11-18T12:00:00+02:00", NOW), NOW - 2 * HOUR);
  for (const wrong of ["", "yesterday", "-7", "7d", "-1y", "2026-11-18", "2026-99-99T00:00:00Z", "-1234567d"]) {
    assert.equal(parseTime(wrong, NOW), null, wrong);
  }
});

test("a range that makes no sense is the default", () => {
  assert.deepEqual(validRange("-1h", "now", NOW), { from: "-1h", to: "now" });
  assert.deepEqual(validRange(undefined, undefined, NOW), DEFAULT_RANGE);
  assert.deepEqual(validRange("now", "-1h", NOW), DEFAULT_RANGE);
  assert.deepEqual(validRange("<script>", "now", NOW), DEFAULT_RANGE);
});

test("a range moves by its own length, and never past now", () => {
  const day = { from: "-24h", to: "now" };
  assert.deepEqual(shifted(day, -1, NOW), absolute(NOW - 48 * HOUR, NOW - 24 * HOUR));
  const hour = absolute(NOW - 1.5 * HOUR, NOW - 0.5 * HOUR);
  assert.deepEqual(shifted(hour, 1, NOW), absolute(NOW - HOUR, NOW));
});

test("zooming out doubles a range, or takes the next preset", () => {
  assert.deepEqual(widened({ from: "-1h", to: "now" }, NOW), { from: "-6h", to: "now" });
  const { from, to } = resolve(widened(absolute(NOW - 4 * HOUR, NOW - 2 * HOUR), NOW), NOW);
  assert.deepEqual([from, to], [NOW - 5 * HOUR, NOW - HOUR]);
});

test("only a range that ends now moves on", () => {
  assert.equal(isLive({ from: "-1h", to: "now" }), true);
  assert.equal(isLive(absolute(NOW - HOUR, NOW)), false);
});

test("a range says what it is", () => {
  assert.equal(describe({ from: "-24h", to: "now" }, NOW), "Last 24 hours");
  assert.equal(describe({ from: "-90m", to: "now" }, NOW), "Last 90m");
  assert.equal(describe(absolute(NOW - HOUR, NOW), NOW), "18 Nov, 11:00 – 12:00");
  assert.equal(describe(absolute(NOW - 24 * HOUR, NOW), NOW), "17 Nov, 12:00 – 18 Nov, 12:00");
});
