/** The loading, empty and error states. */

import type { ComponentChildren } from "preact";
import type { Endpoint } from "../core/hooks";
import { useApp } from "../core/hooks";
import type { Failure } from "../core/client";

export function Loading({ rows = 4 }: { rows?: number }) {
  return (
    <div class="loading" role="status">
      <span class="visually-hidden">Loading</span>
      {Array.from({ length: rows }, (_, row) => <div key={row} class="loading-row" aria-hidden="true" />)}
    </div>
  );
}

export function Empty({ title, children }: { title: string; children?: ComponentChildren }) {
  return (
    <div class="empty">
      <p class="empty-title">{title}</p>
      {children !== undefined && <p>{children}</p>}
    </div>
  );
}

export function Failed({ failure }: { failure: Failure }) {
  const { refresh } = useApp();
  return (
    <div class="failed" role="alert">
      <p class="failed-title">{failure.message}</p>
      {failure.remedy !== null && <p>{failure.remedy}</p>}
      <p class="muted">
        {failure.status > 0 && <>Status {failure.status}, </>}code <code>{failure.code}</code>
      </p>
      <button type="button" onClick={refresh}>Try again</button>
    </div>
  );
}

/** The response once it has arrived. An error of a later request is shown above the earlier response. */
export function Loaded<T>({ endpoint, rows, children }: {
  endpoint: Endpoint<T>;
  rows?: number;
  children: (data: T) => ComponentChildren;
}) {
  const { data, failure, loading } = endpoint;
  return (
    <>
      {failure !== null && <Failed failure={failure} />}
      {data === null && failure === null && <Loading rows={rows ?? 6} />}
      {data !== null && (
        <div class="loaded" data-loading={loading} aria-busy={loading}>{children(data)}</div>
      )}
    </>
  );
}
