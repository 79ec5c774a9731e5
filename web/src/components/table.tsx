/** Tables that scroll sideways within themselves, so that the page never does. */

import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { count } from "../core/format";

export interface Column {
  key: string;
  title: ComponentChildren;
  /** Numbers stand to the right. */
  right?: boolean;
  /** Left out on narrow screens. */
  minor?: boolean;
}

export function DataTable({ label, columns, children, dense }: {
  label: string;
  columns: readonly Column[];
  children: ComponentChildren;
  dense?: boolean;
}) {
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label={label}>
      <table class={dense === true ? "data dense" : "data"}>
        <thead>
          <tr>
            {columns.map((column) => <th key={column.key} scope="col" class={cellClass(column)}>{column.title}</th>)}
          </tr>
        </thead>
        <tbody>{children}</tbody>
      </table>
    </div>
  );
}

export function cellClass({ right, minor }: { right?: boolean; minor?: boolean }): string | undefined {
  const names = [right === true ? "right" : "", minor === true ? "minor" : ""].filter((name) => name !== "");
  return names.length === 0 ? undefined : names.join(" ");
}

/** What shows the rest of a long list; null when all of it is there. */
export type ShowAll = { show: () => void; more: number } | null;

/** The first rows of a long list, until somebody wants all of them. */
export function useFirst<T>(rows: readonly T[], most: number): [readonly T[], ShowAll] {
  const [isAll, setAll] = useState(false);
  if (isAll || rows.length <= most) return [rows, null];
  return [rows.slice(0, most), { show: () => setAll(true), more: rows.length - most }];
}

/** Something that is made only when it is opened. */
export function Folded({ summary, open, children }: { summary: string; open: boolean; children: () => ComponentChildren }) {
  const [isOpen, setOpen] = useState(open);
  return (
    <details class="more" open={isOpen} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>{summary}</summary>
      {isOpen && children()}
    </details>
  );
}

export function MoreButton({ showAll }: { showAll: ShowAll }) {
  if (showAll === null) return null;
  return <button type="button" class="more-button" onClick={showAll.show}>{`Show ${count(showAll.more)} more`}</button>;
}
