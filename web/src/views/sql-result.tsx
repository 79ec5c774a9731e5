/** A result as a table and a chart, and as files to take away. */

import { useMemo, useState } from "preact/hooks";
import type { SqlResult } from "../api";
import { TimeChart } from "../components/chart";
import { BarList } from "../components/parts";
import { Failed } from "../components/states";
import { Failure, postJson } from "../core/client";
import { count, milliseconds, plural } from "../core/format";
import { useRoute } from "../core/hooks";
import { drawing } from "./sql-chart";

/** Rows that are put on the page at once. */
const SHOWN = 200;

const FORMATS: readonly { media: string; name: string; ending: string }[] = [
  { media: "text/csv", name: "CSV", ending: "csv" },
  { media: "application/vnd.apache.parquet", name: "Parquet", ending: "parquet" },
  { media: "application/vnd.apache.arrow.stream", name: "Arrow", ending: "arrows" },
  { media: "application/json", name: "JSON", ending: "json" },
];

export function Result({ result, sql, formats }: { result: SqlResult; sql: string; formats: readonly string[] }) {
  const { param, here } = useRoute();
  const drawn = useMemo(() => drawing(result), [result]);
  const showsChart = drawn !== null && param("as") === "chart";
  return (
    <section aria-label="Result">
      <div class="toolbar">
        <span role="status">
          {plural(result.row_count, "row")} in {milliseconds(result.elapsed_ms)}
          {result.truncated && <strong class="tone-warn"> · cut off: there are more</strong>}
        </span>
        {drawn !== null && (
          <span class="tabs">
            <a href={here({ as: null })} aria-current={showsChart ? undefined : "true"}>Table</a>
            <a href={here({ as: "chart" })} aria-current={showsChart ? "true" : undefined}>Chart</a>
          </span>
        )}
        <Downloads sql={sql} formats={formats} />
      </div>
      {showsChart && drawn.kind === "time" && (
        <TimeChart label="The result over time" time={drawn.time} range={{ step_s: drawn.step }} series={drawn.series} height={300} />
      )}
      {showsChart && drawn.kind === "bars" && (
        <BarList unit={drawn.unit} items={drawn.bars.map((bar, place) => ({ key: String(place), label: bar.label, value: bar.value }))} />
      )}
      {!showsChart && <Rows result={result} />}
    </section>
  );
}

function Rows({ result }: { result: SqlResult }) {
  const [shown, setShown] = useState(SHOWN);
  if (result.rows.length === 0) return <div class="empty"><p class="empty-title">No row</p></div>;
  const isNumber = result.columns.map((column) => /^(smallint|int|bigint|real|double|numeric|decimal|float)/i.test(column.type));
  return (
    <>
      <div class="scroll" tabIndex={0} role="region" aria-label="Rows">
        <table class="data dense rows">
          <thead>
            <tr>{result.columns.map((column, place) => <th key={place} scope="col" title={column.type} class={isNumber[place] ? "right" : undefined}>{column.name}</th>)}</tr>
          </thead>
          <tbody>
            {result.rows.slice(0, shown).map((row, at) => (
              <tr key={at}>
                {result.columns.map((column, place) => (
                  <td key={place} class={isNumber[place] ? "right" : undefined}><Cell name={column.name} value={row[column.name]} /></td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {result.rows.length > shown && (
        <button type="button" class="more-button" onClick={() => setShown(shown + 1000)}>More of {count(result.rows.length)} rows</button>
      )}
    </>
  );
}

/** A value as text; ids lead to what they name. */
function Cell({ name, value }: { name: string; value: unknown }) {
  const { link } = useRoute();
  if (value === null || value === undefined) return <span class="muted">null</span>;
  const text = typeof value === "object" ? JSON.stringify(value) : String(value);
  if (name === "fingerprint") return <a class="mono" href={link(["groups", text])}>{text}</a>;
  if (name === "event_id" || name === "newest_event_id" || name === "example_event_id") return <a class="mono" href={link(["events", text])}>{text}</a>;
  if (name === "canonical") return <a class="mono" href={link(["codes", text])}>{text}</a>;
  return <>{text}</>;
}

function Downloads({ sql, formats }: { sql: string; formats: readonly string[] }) {
  const [failure, setFailure] = useState<Failure | null>(null);
  const [notice, setNotice] = useState("");
  const offered = FORMATS.filter(({ media }) => formats.some((format) => format.startsWith(media)));
  const download = async (media: string, ending: string) => {
    setNotice("Preparing the file");
    setFailure(null);
    try {
      const response = await postJson("sql", { query: sql }, media);
      save(await response.blob(), `faultline.${ending}`);
      setNotice(response.headers.get("x-faultline-truncated") === "true" ? "The file is cut off: there are more rows." : "");
    } catch (error) {
      setNotice("");
      setFailure(error instanceof Failure ? error : new Failure(0, "page", String(error)));
    }
  };
  return (
    <span class="downloads">
      {offered.length > 0 && <span class="muted">Download</span>}
      {offered.map(({ media, name, ending }) => (
        <button key={media} type="button" class="quiet" aria-label={`Download as ${name}`} onClick={() => void download(media, ending)}>{name}</button>
      ))}
      <span role="status">{notice}</span>
      {failure !== null && <Failed failure={failure} />}
    </span>
  );
}

function save(blob: Blob, name: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
