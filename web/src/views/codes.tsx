/** Every known code, and what each dialect means by it. */

import type { Code, Codes } from "../api";
import { CATEGORY_OPTIONS, Search, Select } from "../components/filters";
import { CategoryBadge, Num, Panel } from "../components/parts";
import { MeaningText, retryWords } from "../components/meaning";
import { Loaded, Empty } from "../components/states";
import { DataTable } from "../components/table";
import { plural } from "../core/format";
import { useEndpoint, useRoute, useTitle } from "../core/hooks";
import { filtersOf } from "../core/url";
import { recoveryAdvice } from "../core/words";

export function CodesView({ canonical }: { canonical: string | undefined }) {
  useTitle(canonical ?? "Codes");
  const { route } = useRoute();
  const endpoint = useEndpoint<Codes>("codes", filtersOf(route, ["from", "to"]));
  if (canonical !== undefined) {
    return <Loaded endpoint={endpoint} rows={8}>{(data) => <One data={data} canonical={canonical} />}</Loaded>;
  }
  return (
    <>
      <h1>Codes</h1>
      <p class="lead">Every code that the registry knows. Codes of different dialects that mean the same share a canonical name.</p>
      <Loaded endpoint={endpoint} rows={12}>{(data) => <List data={data} />}</Loaded>
    </>
  );
}

interface Entry {
  canonical: string;
  category: string;
  codes: Code[];
  seen: number;
}

/** The registry by canonical code, and what was seen of codes that are in no registry. */
export function entries(data: Codes): Entry[] {
  const byName = new Map<string, Entry>();
  for (const code of data.codes) {
    const entry = byName.get(code.canonical) ?? { canonical: code.canonical, category: code.category, codes: [], seen: 0 };
    entry.codes.push(code);
    byName.set(code.canonical, entry);
  }
  for (const { canonical, category, errors } of data.seen) {
    const entry = byName.get(canonical) ?? { canonical, category, codes: [], seen: 0 };
    entry.seen += errors;
    byName.set(canonical, entry);
  }
  return [...byName.values()].sort((a, b) => b.seen - a.seen || a.canonical.localeCompare(b.canonical));
}

function matches(entry: Entry, text: string): boolean {
  const wanted = text.toLowerCase();
  const fields = [entry.canonical, ...entry.codes.flatMap((code) => [code.code, code.name, code.description])];
  return fields.some((field) => field.toLowerCase().includes(wanted));
}

function List({ data }: { data: Codes }) {
  const { param, link } = useRoute();
  const [text, category, dialect, seen] = [param("q") ?? "", param("category"), param("dialect"), param("seen")];
  const dialects = [...new Set(data.codes.map((code) => code.dialect))];
  const found = entries(data).filter((entry) =>
    (category === null || entry.category === category)
    && (dialect === null || entry.codes.some((code) => code.dialect === dialect))
    && (seen !== "true" || entry.seen > 0)
    && (text === "" || matches(entry, text)));
  return (
    <>
      <div class="toolbar">
        <Search label="Search codes" placeholder="Search codes and meanings" />
        <Select name="category" label="Category" any="All categories" options={CATEGORY_OPTIONS} />
        <Select name="dialect" label="Dialect" any="All dialects" options={dialects.map((each) => [each, each] as const)} />
        <Select name="seen" label="Seen" any="Seen or not" options={[["true", "Seen in this time"]]} />
      </div>
      <p class="summary" role="status">{plural(found.length, "canonical code")}, {plural(found.reduce((sum, entry) => sum + entry.codes.length, 0), "code")} of {plural(dialects.length, "dialect")}</p>
      {found.length === 0 ? <Empty title="No code matches">Try a part of its name, a number, or a word of its meaning.</Empty> : (
        <DataTable label="Codes" columns={[
          { key: "canonical", title: "Canonical code" }, { key: "category", title: "Category", minor: true },
          { key: "sent", title: "Sent as", minor: true }, { key: "meaning", title: "Meaning", minor: true }, { key: "seen", title: "Seen", right: true },
        ]}>
          {found.map((entry) => (
            <tr key={entry.canonical}>
              <td class="cell-code"><a class="mono" href={link(["codes", entry.canonical])}>{entry.canonical}</a></td>
              <td class="minor"><CategoryBadge category={entry.category} /></td>
              <td class="minor"><SentAs entry={entry} /></td>
              <td class="minor cell-main">{meaningOf(entry)?.description}</td>
              <td class="right"><Num value={entry.seen} label={`failures with ${entry.canonical}`} href={link(["events"], { kind: "error", code: entry.canonical })} /></td>
            </tr>
          ))}
        </DataTable>
      )}
    </>
  );
}

/** Codes that a row names; the others are on the page of the code. */
const NAMED = 4;

function SentAs({ entry }: { entry: Entry }) {
  const { link } = useRoute();
  if (entry.codes.length === 0) return <span class="muted">in no registry</span>;
  const more = entry.codes.length - NAMED;
  return (
    <>
      {entry.codes.slice(0, NAMED).map((code) => (
        <span key={`${code.dialect} ${code.code}`} class="sub"><span class="mono">{code.code}</span> {code.dialect}</span>
      ))}
      {more > 0 && <a class="sub" href={link(["codes", entry.canonical])}>{plural(more, "more", "more")}</a>}
    </>
  );
}

/** What a canonical code means: as the specification says that has its name, or else as the first dialect does. */
function meaningOf(entry: Entry): Code | undefined {
  return entry.codes.find((code) => code.code === entry.canonical) ?? entry.codes[0];
}

function One({ data, canonical }: { data: Codes; canonical: string }) {
  const { link } = useRoute();
  const entry = entries(data).find((each) => each.canonical === canonical);
  const about = data.categories.find((each) => each.category === entry?.category);
  if (entry === undefined) {
    return <><h1 class="mono">{canonical}</h1><Empty title="No registry knows this code, and it was not seen in this time" /></>;
  }
  // The same number may mean something else elsewhere: that is what one wants to know.
  const sent = new Set(entry.codes.map((code) => code.code));
  const elsewhere = data.codes.filter((code) => sent.has(code.code) && code.canonical !== canonical);
  return (
    <>
      <p class="crumbs"><a href={link(["codes"])}>Codes</a></p>
      <h1 class="mono">{canonical}</h1>
      <p class="tags"><CategoryBadge category={entry.category} />
        <span>seen <Num value={entry.seen} href={link(["events"], { kind: "error", code: canonical })} label="failures" /> times</span>
        <a href={link(["groups"], { code: canonical })}>groups</a>
      </p>
      <div class="grid">
        <Panel title="What to do" wide>
          <MeaningText meaning={meaningOf(entry) ?? (about === undefined ? null : { ...about, http_status: null })} />
        </Panel>
        <Panel title="In every dialect" wide><Meanings codes={entry.codes} /></Panel>
        {elsewhere.length > 0 && (
          <Panel title="The same code with another meaning" wide><Meanings codes={elsewhere} linked /></Panel>
        )}
      </div>
    </>
  );
}

function Meanings({ codes, linked }: { codes: Code[]; linked?: boolean }) {
  const { link } = useRoute();
  if (codes.length === 0) return <Empty title="No registry has this code" />;
  return (
    <DataTable label="Meanings" dense columns={[
      { key: "dialect", title: "Dialect" }, { key: "code", title: "Code" }, { key: "meaning", title: "Meaning" },
      { key: "retry", title: "A retry", minor: true }, { key: "do", title: "What to do", minor: true },
    ]}>
      {codes.map((code) => (
        <tr key={`${code.dialect} ${code.code}`}>
          <td class="cell-name">{code.dialect}<span class="sub">{code.origin}</span></td>
          <td><span class="mono">{code.code}</span>{code.name !== code.code && <span class="sub mono">{code.name}</span>}
            {linked === true && <a class="sub mono" href={link(["codes", code.canonical])}>{code.canonical}</a>}</td>
          <td class="cell-main">{code.description}</td>
          <td class="minor">{retryWords(code.retryable)}</td>
          <td class="minor">{recoveryAdvice(code.recovery)}</td>
        </tr>
      ))}
    </DataTable>
  );
}
