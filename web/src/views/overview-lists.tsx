/** The short lists of the overview: new groups, retry loops, and quotas that are nearly exhausted. */

import type { Overview, QuotaRow, RetryLoop } from "../api";
import { Ago, CategoryBadge, Num, Panel, Text } from "../components/parts";
import { Empty } from "../components/states";
import { Gauge, quotaEnd, quotaEvents } from "../components/gauge";
import { useRoute } from "../core/hooks";
import { loopAttempts } from "../core/statements";
import { resolve } from "../core/time";
import { recoveryAdvice, words } from "../core/words";

export function NewGroupsPanel({ groups, now }: { groups: Overview["new_groups"]; now: number }) {
  const { link } = useRoute();
  return (
    <Panel title="New groups" actions={<a href={link(["groups"], { state: "new" })}>All new groups</a>}>
      {groups.length === 0 ? <Empty title="No new group in this time" /> : (
        <ul class="list">
          {groups.map((group) => (
            <li key={group.fingerprint}>
              <p class="list-main">
                <a class="clip" href={link(["groups", group.fingerprint])}>{group.template ?? group.canonical}</a>
                <Num value={group.errors} href={link(["events"], { kind: "error", fingerprint: group.fingerprint })} label="failures" />
              </p>
              <p class="list-note">
                <CategoryBadge category={group.category} /> <Text value={group.service} /> · <Text value={group.operation} /> ·{" "}
                first <Ago time={group.first_seen} now={now} />
              </p>
            </li>
          ))}
        </ul>
      )}
    </Panel>
  );
}

export function LoopsPanel({ loops, now }: { loops: RetryLoop[]; now: number }) {
  return (
    <Panel title="Retry loops" about="The same client failing the same way within ten minutes.">
      {loops.length === 0 ? <Empty title="No retry loop in this time" /> : <LoopList loops={loops} now={now} />}
    </Panel>
  );
}

export function LoopList({ loops, now }: { loops: RetryLoop[]; now: number }) {
  const { link } = useRoute();
  return (
    <ul class="list">
      {loops.map((loop) => {
        const events = link(["sql"], { sql: loopAttempts(loop) });
        return (
          <li key={`${loop.time} ${loop.client} ${loop.fingerprint}`}>
            <p class="list-main">
              <span class="clip"><b>{loop.client}</b> at <Text value={loop.service} /> · <Text value={loop.operation} /></span>
              <span><Num value={loop.attempts} href={events} label="attempts" /> times</span>
            </p>
            <p class="list-note">
              <a class="mono" href={link(["groups", loop.fingerprint])}>{loop.canonical}</a> · <Ago time={loop.last_seen} now={now} />
              {loop.retryable === false && <> · <span class="tone-danger">no retry can help.</span> {recoveryAdvice(loop.recovery)}</>}
            </p>
          </li>
        );
      })}
    </ul>
  );
}

export function QuotasPanel({ quotas, now }: { quotas: QuotaRow[]; now: number }) {
  const { link, range } = useRoute();
  return (
    <Panel title="Quotas closest to their limit" actions={<a href={link(["quotas"])}>All quotas</a>}>
      {quotas.length === 0 ? <Empty title="No quota is in use" /> : (
        <ul class="list">
          {quotas.map((quota) => (
            <li key={`${quota.service} ${quota.client} ${quota.quota_metric}`}>
              <p class="list-main">
                <a class="clip" href={link(["events"], quotaEvents(quota, resolve(range, now).from))}>
                  {words(quota.quota_metric ?? "unnamed limit")}
                </a>
                <span class="muted clip"><Text value={quota.service} /> · <Text value={quota.client} /></span>
              </p>
              <Gauge quota={quota} now={now} />
              <p class="list-note">{quotaEnd(quota, now).text}</p>
            </li>
          ))}
        </ul>
      )}
    </Panel>
  );
}
