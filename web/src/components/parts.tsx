/** Small parts that every view is made of. */

import type { ComponentChildren } from "preact";
import { categoryColor, categoryName, FAULTS } from "../core/words";
import type { Fault } from "../api";
import { count, fullTime, relative } from "../core/format";
import { cssVar } from "./style";

/** A region with a heading. */
export function Panel({ title, about, actions, wide, children }: {
  title: string;
  about?: ComponentChildren;
  actions?: ComponentChildren;
  wide?: boolean;
  children: ComponentChildren;
}) {
  return (
    <section class={`panel${wide === true ? " panel-wide" : ""}`}>
      <header class="panel-head">
        <h2>{title}</h2>
        {actions !== undefined && <div class="panel-actions">{actions}</div>}
      </header>
      {about !== undefined && <p class="panel-about">{about}</p>}
      {children}
    </section>
  );
}

export function CategoryBadge({ category }: { category: string }) {
  return (
    <span class="badge">
      <span class="swatch" style={cssVar(categoryColor(category))} aria-hidden="true" />
      {categoryName(category)}
    </span>
  );
}

/** In words only: a second coloured square would look like a second category. */
export function FaultBadge({ fault }: { fault: Fault | null | undefined }) {
  if (fault === null || fault === undefined) return null;
  return <span class="muted nowrap" title={FAULTS[fault]?.about}>fault: {(FAULTS[fault]?.name ?? fault).toLowerCase()}</span>;
}

/** Marks what no other dashboard shows. */
export function HiddenMark() {
  return <span class="hidden-mark" title="It travelled in a reply that its protocol calls a success">hidden</span>;
}

/** A number that leads to the events behind it. */
export function Num({ value, href, label, tone }: {
  value: number | null | undefined;
  href?: string | undefined;
  /** What the number counts, for those who do not see its column. */
  label?: string;
  tone?: "hidden" | "danger" | undefined;
}) {
  const text = count(value);
  const kind = tone === undefined ? "num" : `num num-${tone}`;
  if (href === undefined || value === null || value === undefined || value === 0) {
    return <span class={value === 0 ? "num muted" : kind}>{text}</span>;
  }
  return <a class={kind} href={href} aria-label={label === undefined ? undefined : `${text} ${label}`}>{text}</a>;
}

/** How long ago; the time itself is in its title. */
export function Ago({ time, now }: { time: string | null | undefined; now: number }) {
  if (time === null || time === undefined) return <span class="muted">–</span>;
  return <time dateTime={time} title={fullTime(time, true)}>{relative(time, now)}</time>;
}

/** A text of a sender; a dash when there is none. */
export function Text({ value, mono }: { value: string | null | undefined; mono?: boolean }) {
  if (value === null || value === undefined || value === "") return <span class="muted">–</span>;
  return <span class={mono === true ? "mono" : undefined}>{value}</span>;
}

export interface BarItem {
  key: string;
  label: ComponentChildren;
  value: number;
  /** Part of the value that is hidden. */
  hidden?: number;
  color?: string;
  href?: string;
  note?: ComponentChildren;
}

/** Values as bars, each with its label and number. */
export function BarList({ items, unit }: { items: BarItem[]; unit: string }) {
  const most = Math.max(1, ...items.map((item) => item.value));
  return (
    <ol class="bars">
      {items.map((item) => (
        <li key={item.key}>
          <span class="bars-label">{item.label}</span>
          <span class="bars-note">{item.note}</span>
          <Num value={item.value} href={item.href} label={unit} />
          <span class="bars-track" aria-hidden="true">
            <span class="bars-fill" style={{ ...cssVar(item.color ?? "--accent-fill"), width: `${(item.value / most) * 100}%` }} />
            {item.hidden !== undefined && item.hidden > 0 && (
              <span class="bars-hidden" style={{ width: `${(item.hidden / most) * 100}%` }} />
            )}
          </span>
        </li>
      ))}
    </ol>
  );
}

export function CopyButton({ text, label }: { text: string; label: string }) {
  const copy = (event: MouseEvent) => {
    const button = event.currentTarget as HTMLButtonElement;
    navigator.clipboard.writeText(text).then(
      () => {
        button.textContent = "Copied";
        setTimeout(() => (button.textContent = label), 1500);
      },
      () => (button.textContent = "Copying is not allowed here"),
    );
  };
  return <button type="button" class="quiet" onClick={copy}>{label}</button>;
}
