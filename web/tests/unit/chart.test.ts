import assert from "node:assert/strict";
import { test } from "node:test";
import { bucketAt, bucketEnds, stacked, totals, zoomed } from "../../src/components/chart-data";
import type { SqlResult } from "../../src/api";
import { drawing } from "../../src/views/sql-chart";

const series = (values: (number | null)[]) => ({ key: "", label: "", color: "", values });

test("a stack adds up, and nothing counts as 0", () => {
  const both = [series([1, 2, null]), series([10, null, 30])];
  assert.deepEqual(stacked(both), [[1, 2, 0], [11, 2, 30]]);
  assert.deepEqual(totals(both), [3, 40]);
});

test("a selection is widened to whole buckets, and is never the whole", () => {
  const time = [0, 60, 120, 180];
  assert.deepEqual(zoomed(70, 130, time, 60), { from: 60, to: 180 });
  assert.deepEqual(zoomed(-50, 10, time, 60), { from: 0, to: 60 });
  assert.equal(zoomed(1, 239, time, 60), null);
  assert.equal(zoomed(130, 70, time, 60), null);
  assert.equal(zoomed(0, 1, [], 60), null);
});

test("every second of a bucket is in it", () => {
  assert.deepEqual([-1, 0, 59, 60, 119, 120].map((at) => bucketAt(at, [0, 60], 60)), [-1, 0, 0, 1, 1, -1]);
});

test("the first and the last bucket end with the range", () => {
  const range = { from: "1970-01-01T00:00:20.5Z", to: "1970-01-01T00:02:40Z", step_s: 60 };
  assert.deepEqual(bucketEnds(0, range), ["1970-01-01T00:00:20.5Z", "1970-01-01T00:01:00Z"]);
  assert.deepEqual(bucketEnds(60, range), ["1970-01-01T00:01:00Z", "1970-01-01T00:02:00Z"]);
  assert.deepEqual(bucketEnds(120, range), ["1970-01-01T00:02:00Z", "1970-01-01T00:02:40Z"]);
  assert.deepEqual(bucketEnds(0, { step_s: 60 }), ["1970-01-01T00:00:00Z", "1970-01-01T00:01:00Z"]);
});

function result(columns: [string, string][], rows: Record<string, unknown>[]): SqlResult {
  return { columns: columns.map(([name, type]) => ({ name, type })), rows, row_count: rows.length, elapsed_ms: 1, truncated: false };
}

test("a result with times is drawn over time, a series for each text", () => {
  const drawn = drawing(result([["since", "timestamp with time zone"], ["category", "text"], ["errors", "bigint"]], [
    { since: "2026-11-18T00:00:00Z", category: "TOKEN", errors: 3 },
    { since: "2026-11-18T00:00:00Z", category: "SCHEMA", errors: 4 },
    { since: "2026-11-18T02:00:00Z", category: "TOKEN", errors: 5 },
    { since: "2026-11-18T03:00:00Z", category: "TOKEN", errors: "6" },
  ]));
  assert.equal(drawn?.kind, "time");
  if (drawn?.kind !== "time") return;
  assert.equal(drawn.step, 3600);
  assert.deepEqual(drawn.series.map(({ key, values }) => [key, values]), [["TOKEN", [3, null, 5, 6]], ["SCHEMA", [4, null, null, null]]]);
});

test("a result with texts is drawn as bars, and one without numbers not at all", () => {
  const drawn = drawing(result([["service", "text"], ["errors", "bigint"]], [{ service: "geo", errors: 2 }, { service: null, errors: 1 }]));
  assert.deepEqual(drawn, { kind: "bars", unit: "errors", bars: [{ label: "geo", value: 2 }, { label: "none", value: 1 }] });
  assert.equal(drawing(result([["service", "text"]], [{ service: "geo" }])), null);
  assert.equal(drawing(result([["errors", "bigint"]], [])), null);
});
