/** Events, a row each. */

import type { EventRow } from "../api";
import { CategoryBadge, HiddenMark, Text } from "./parts";
import { DataTable } from "./table";
import { count, fullTime, milliseconds } from "../core/format";
import { useRoute } from "../core/hooks";

export function EventList({ events, label }: { events: readonly EventRow[]; label: string }) {
  return (
    <DataTable label={label} dense columns={[
      { key: "time", title: "Time" },
      { key: "what", title: "Message" },
      { key: "where", title: "Service", minor: true },
      { key: "client", title: "Client", minor: true },
      { key: "took", title: "Duration", right: true, minor: true },
    ]}>
      {events.map((event) => <EventLine key={event.event_id} event={event} />)}
    </DataTable>
  );
}

function EventLine({ event }: { event: EventRow }) {
  const { link } = useRoute();
  return (
    <tr data-hidden={event.hidden}>
      <td class="cell-time">
        <a href={link(["events", event.event_id], { time: event.time })}>
          <time dateTime={event.time} title={fullTime(event.time, true)}><span class="minor">{fullTime(event.time).slice(5, 11)}</span>{fullTime(event.time).slice(11)}</time>
        </a>
      </td>
      <td class="cell-main">
        <span class="clip-2">{event.message ?? event.canonical}</span>
        <span class="sub">
          {event.hidden && <HiddenMark />}
          {event.kind !== "error" && <span class="mark">{event.kind}</span>}
          <CategoryBadge category={event.category} /> <span class="mono">{event.canonical}</span>
          <span class="narrow-only"><Text value={event.service} /> · <Text value={event.operation} /></span>
          {(event.represents ?? 1) > 1 && <span class="mark" title="This row stands for more events of the same sort">× {count(event.represents)}</span>}
        </span>
      </td>
      <td class="minor cell-where"><Text value={event.service} /><span class="sub"><Text value={event.operation} /></span></td>
      <td class="minor"><Text value={event.client} /></td>
      <td class="right minor">{milliseconds(event.duration_us === null || event.duration_us === undefined ? null : event.duration_us / 1000)}</td>
    </tr>
  );
}
