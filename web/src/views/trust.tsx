/** Denials by trust and danger, and the funnel of confirmations. */

import type { Confirmation, Trust } from "../api";
import { Ago, Num, Panel, Text } from "../components/parts";
import { TimeChart } from "../components/chart";
import { Loaded, Empty } from "../components/states";
import { DataTable, MoreButton, useFirst } from "../components/table";
import { count, duration, percent, plural, ratio } from "../core/format";
import { useEndpoint, useNow, useRoute, useTitle } from "../core/hooks";
import { filtersOf } from "../core/url";
import { confirmations as confirmationsSql, tokenAttempts } from "../core/statements";
import { words } from "../core/words";

const COLORS = ["--accent-fill", "--warn-fill", "--danger-fill", "--open-fill"];

export function TrustView() {
  useTitle("Trust");
  const { route } = useRoute();
  const endpoint = useEndpoint<Trust>("trust", filtersOf(route, ["from", "to", "service", "environment", "client", "operation"]));
  return (
    <>
      <h1>Trust</h1>
      <Loaded endpoint={endpoint} rows={8}>{(data) => <Body data={data} />}</Loaded>
    </>
  );
}

function Body({ data }: { data: Trust }) {
  const now = useNow(10);
  const { link } = useRoute();
  const codes = Object.entries(data.series.by_code);
  const denied = { kind: "error", denied: "true" };
  return (
    <div class="grid">
      <Panel title="Denials" wide actions={<><Num value={data.total_denials} href={link(["events"], denied)} label="denials" /> denials</>}>
        <TimeChart label="Denials by code" time={data.series.time} range={data.range} height={160}
          series={codes.map(([code, values], place) => ({
            key: code, label: code, values, color: COLORS[place % COLORS.length] ?? "--open-fill", href: link(["events"], { ...denied, code }),
          }))}
          bucketLink={(from, to) => link(["events"], { ...denied, from, to })} />
      </Panel>
      <Panel title="Confirmations" wide about="How far each confirmation token came: required, granted by a person, used.">
        <Funnel confirmations={data.confirmations} range={data.range} />
        <Tokens tokens={data.confirmations.tokens} now={now} />
      </Panel>
      <Panel title="Denied operations" wide><Denials data={data} now={now} /></Panel>
    </div>
  );
}

function Denials({ data, now }: { data: Trust; now: number }) {
  const { link } = useRoute();
  const [shown, showAll] = useFirst(data.denials, 15);
  if (data.denials.length === 0) return <Empty title="Nothing was denied in this time" />;
  return (
    <>
    <DataTable label="Denials" dense columns={[
      { key: "operation", title: "Operation" }, { key: "why", title: "Why", minor: true }, { key: "trust", title: "Trust there → required" },
      { key: "danger", title: "Danger", minor: true }, { key: "denials", title: "Denials", right: true },
      { key: "clients", title: "Clients", right: true, minor: true }, { key: "last", title: "Last", minor: true },
    ]}>
      {shown.map((row) => (
        <tr key={`${row.service} ${row.operation} ${row.canonical} ${row.required_trust} ${row.actual_trust} ${row.danger_level}`}>
          <td class="cell-main"><Text value={row.operation} /><span class="sub"><Text value={row.service} /></span></td>
          <td class="minor"><a class="mono" href={link(["codes", row.canonical])}>{row.canonical}</a></td>
          <td>
            {row.actual_trust === null && row.required_trust === null ? <span class="muted">–</span> : (
              <>{words(row.actual_trust ?? "unknown")} → <b>{words(row.required_trust ?? "unknown")}</b></>
            )}
            {row.trust_gap !== null && row.trust_gap > 0 && <span class="sub">{plural(row.trust_gap, "level")} missing</span>}
          </td>
          <td class="minor"><Danger level={row.danger_level} /></td>
          <td class="right">
            <Num value={row.denials} label="denials" href={link(["events"], {
              kind: "error", denied: "true", service: row.service ?? "", operation: row.operation ?? "", code: row.canonical,
              required_trust: row.required_trust ?? "", actual_trust: row.actual_trust ?? "", danger_level: row.danger_level ?? "",
            })} />
          </td>
          <td class="right minor">{count(row.clients)}</td>
          <td class="minor"><Ago time={row.last_seen} now={now} /></td>
        </tr>
      ))}
    </DataTable>
    <MoreButton showAll={showAll} />
    </>
  );
}

function Danger({ level }: { level: string | null }) {
  if (level === null) return <span class="muted">–</span>;
  return <span class={["dangerous", "forbidden"].includes(level) ? "tone-danger" : ""}>{level}</span>;
}

/** States in which a confirmation ended badly come first. */
const STATES: readonly [string, string, string][] = [
  ["replayed", "Replayed", "danger"],
  ["invalid", "Invalid", "danger"],
  ["expired", "Expired", "warn"],
  ["abandoned", "Abandoned", "warn"],
  ["revoked", "Revoked", "warn"],
  ["required", "Required", "none"],
  ["granted", "Granted", "none"],
  ["used", "Used", "ok"],
];

function Funnel({ confirmations, range }: { confirmations: Trust["confirmations"]; range: Trust["range"] }) {
  const { all: given, link } = useRoute();
  const { required, granted, used, states, median_seconds_to_use: median } = confirmations;
  const all = Object.values(states).reduce((sum, tokens) => sum + tokens, 0);
  if (all === 0) return <Empty title="No confirmation was required in this time" />;
  const most = Math.max(1, required, granted, used);
  const steps: [string, number, string][] = [
    ["Required", required, "required_at"], ["Granted", granted, "granted_at"], ["Used", used, "used_at"],
  ];
  const filters = Object.fromEntries(["service", "client", "operation"].map((name) => [name, given(name)]));
  const rows = (condition: string) => link(["sql"], { sql: confirmationsSql(range, filters, condition) });
  return (
    <div class="funnel-box">
      <ol class="funnel">
        {steps.map(([name, tokens, column]) => (
          <li key={name}>
            <span class="funnel-name">{name}</span>
            <span class="funnel-track" aria-hidden="true"><span style={{ width: `${(tokens / most) * 100}%` }} /></span>
            <span><Num value={tokens} href={rows(`${column} IS NOT NULL`)} label={`confirmations ${name.toLowerCase()}`} /> <span class="muted">{percent(ratio(tokens, required))}</span></span>
          </li>
        ))}
      </ol>
      <dl class="facts facts-row">
        {STATES.filter(([state]) => (states[state] ?? 0) > 0).map(([state, name, tone]) => (
          <div key={state}>
            <dt>{name}</dt>
            <dd><Num value={states[state]} href={rows(`state = '${state}'`)} label={`confirmations ${name.toLowerCase()}`} tone={tone === "danger" ? "danger" : undefined} /></dd>
          </div>
        ))}
        {median !== null && <div><dt>Median time to use</dt><dd>{duration(median)}</dd></div>}
      </dl>
    </div>
  );
}

function Tokens({ tokens, now }: { tokens: Confirmation[]; now: number }) {
  const { link } = useRoute();
  const [shown, showAll] = useFirst(tokens, 10);
  if (tokens.length === 0) return null;
  const named = new Map(STATES.map(([state, name, tone]) => [state, { name, tone }]));
  return (
    <>
    <DataTable label="Confirmation tokens" dense columns={[
      { key: "token", title: "Token" }, { key: "state", title: "State" }, { key: "operation", title: "Operation" },
      { key: "client", title: "Client", minor: true }, { key: "attempts", title: "Attempts", right: true, minor: true },
      { key: "refusals", title: "Rejected", right: true, minor: true }, { key: "last", title: "Last" },
    ]}>
      {shown.map((token) => (
        <tr key={token.token_hash}>
          <td><a class="mono nowrap" href={link(["events"], { token_hash: token.token_hash, service: null, environment: null, from: earlier(token), to: "now" })}>{token.token_hash.slice(0, 8)}</a></td>
          <td><span class={`state state-${named.get(token.state)?.tone ?? "none"}`}>{named.get(token.state)?.name ?? token.state}</span></td>
          <td class="cell-main"><Text value={token.operation} /><span class="sub"><Text value={token.service} /></span></td>
          <td class="minor"><Text value={token.client} /></td>
          <td class="right minor"><Num value={token.attempts} href={link(["sql"], { sql: tokenAttempts(token) })} label="attempts to use the token" /></td>
          <td class="right minor"><Num value={token.refusals} label="rejected attempts"
            href={link(["events"], { kind: "error", category: "TOKEN", token_hash: token.token_hash, service: null, environment: null, from: earlier(token), to: "now" })} /></td>
          <td><Ago time={token.last_seen} now={now} /></td>
        </tr>
      ))}
    </DataTable>
    <MoreButton showAll={showAll} />
    </>
  );
}

/** A token's events may have begun before the chosen time. */
function earlier(token: Confirmation): string {
  const first = [token.required_at, token.granted_at, token.used_at, token.last_seen].filter((time) => time !== null).sort()[0];
  return first ?? token.last_seen;
}
