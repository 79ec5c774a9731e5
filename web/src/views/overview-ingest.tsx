/** How the collector itself is: whether it takes everything in, and how much it keeps. */

import type { ComponentChildren } from "preact";
import type { Ingest } from "../api";
import { Ago, Panel } from "../components/parts";
import { bytes, count } from "../core/format";
import { words } from "../core/words";
import { useRoute } from "../core/hooks";

export function IngestPanel({ ingest, now }: { ingest: Ingest; now: number }) {
  const { link } = useRoute();
  const rejections = Object.entries(ingest.rejected_requests).filter(([, number]) => number > 0);
  return (
    <Panel title="Ingest"
      actions={<span class={ingest.ready ? "state state-ok" : "state state-danger"}>{ingest.ready ? "Ready" : "Not ready"}</span>}>
      {ingest.message !== null && <p class="tone-danger">{ingest.message}</p>}
      <dl class="facts">
        <Fact name="Newest event"><Ago time={ingest.last_event_at} now={now} /></Fact>
        <Fact name="In the last minute">{count(ingest.events_last_minute)} events</Fact>
        <Fact name="Since the start">{count(ingest.events)} events<StartedAgo time={ingest.started_at} now={now} /></Fact>
        <Fact name="Not recognised">
          {ingest.unrecognized === 0 ? "0" : (
            <a href={link(["sql"], { sql: "SELECT * FROM rejects ORDER BY time DESC LIMIT 100" })}>{count(ingest.unrecognized)}</a>
          )} records
        </Fact>
        <Fact name="Rejected records">{count(ingest.rejected)}</Fact>
        <Fact name="Rejected requests">
          {rejections.length === 0 ? "0" : rejections.map(([reason, number]) => `${words(reason)} ${count(number)}`).join(", ")}
        </Fact>
        <Fact name="Stored">{count(ingest.stored_events)} events, {bytes(ingest.stored_bytes)}</Fact>
        <Fact name="Buffered">{count(ingest.buffered_events)} events, WAL {bytes(ingest.wal_bytes)}</Fact>
      </dl>
    </Panel>
  );
}

function StartedAgo({ time, now }: { time: string | null; now: number }) {
  return time === null ? null : <> (started <Ago time={time} now={now} />)</>;
}

export function Fact({ name, children }: { name: string; children: ComponentChildren }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}
