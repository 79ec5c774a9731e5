/** The head of the page: where one is, and what time and which service everything below is about. */

import { useEffect, useRef, useState } from "preact/hooks";
import type { Names, Session } from "../api";
import { Failure, signOut } from "../core/client";
import { navigate, refreshSeconds, TIMELESS, useEndpoint, useApp, useRoute } from "../core/hooks";
import { describe, isLive, parseTime, PRESETS, resolve, shifted, toInput, absolute, widened } from "../core/time";
import type { Theme } from "../core/theme";
import { THEMES } from "../core/theme";

const VIEWS: readonly [string, string][] = [
  ["", "Overview"],
  ["groups", "Groups"],
  ["events", "Events"],
  ["services", "Services"],
  ["quotas", "Quotas"],
  ["trust", "Trust"],
  ["live", "Live"],
  ["codes", "Codes"],
  ["sql", "SQL"],
];

/** Views that are about all services. */
const FOR_ALL = ["codes"];

export function Header({ session, theme, setTheme, onSignOut }: {
  session: Session;
  theme: Theme;
  setTheme: (theme: Theme) => void;
  onSignOut: () => void;
}) {
  const { route, link } = useRoute();
  const [first = ""] = route.path;
  const current = first === "overview" ? "" : first;
  const views = useRef<HTMLUListElement>(null);
  // On a narrow screen the names scroll sideways: the one that is shown must be seen.
  useEffect(() => {
    const shown = views.current?.querySelector<HTMLElement>("[aria-current]");
    if (shown && views.current) views.current.scrollLeft = shown.offsetLeft - views.current.clientWidth / 2 + shown.clientWidth / 2;
  }, [current]);
  return (
    <header class="head">
      <div class="head-top">
        <a class="brand" href={link([])}>
          <svg viewBox="0 0 32 32" width="22" height="22" aria-hidden="true" focusable="false">
            <path d="M3 17h7l3.5-9 5 16 3-7H29" fill="none" stroke="currentColor" stroke-width="3" stroke-linejoin="round" stroke-linecap="round" />
          </svg>
          Faultline
        </a>
        <nav aria-label="Views" class="views">
          <ul ref={views}>
            {VIEWS.map(([path, name]) => (
              <li key={path}>
                <a href={link(path === "" ? [] : [path])} aria-current={current === path ? "page" : undefined}>{name}</a>
              </li>
            ))}
          </ul>
        </nav>
        <div class="head-end">
          <label class="visually-hidden" for="theme">Theme</label>
          <select id="theme" class="quiet" value={theme} onChange={(event) => setTheme(event.currentTarget.value as Theme)}>
            {THEMES.map((each) => <option key={each} value={each}>{THEME_NAMES[each]}</option>)}
          </select>
          {session.required && session.signed_in && <SignedIn session={session} onSignOut={onSignOut} />}
        </div>
      </div>
      {!TIMELESS.includes(current) && !(current === "events" && route.path.length > 1) && <Controls hasFilters={!FOR_ALL.includes(current)} />}
    </header>
  );
}

const THEME_NAMES: Record<Theme, string> = { auto: "Theme: system", light: "Theme: light", dark: "Theme: dark" };

/** The form is shown only when the server has ended the session: until then the cookie is still worth something. */
function SignedIn({ session, onSignOut }: { session: Session; onSignOut: () => void }) {
  const [failure, setFailure] = useState<string | null>(null);
  const [isBusy, setBusy] = useState(false);
  const leave = () => {
    setBusy(true);
    setFailure(null);
    signOut().then(onSignOut, (error: unknown) => {
      setBusy(false);
      // A session that the server does not know any more has ended as well.
      if (error instanceof Failure && error.status === 401) onSignOut();
      else setFailure(error instanceof Failure ? error.message : String(error));
    });
  };
  return (
    <span class="signed-in">
      <span class="muted">{session.name ?? "signed in"}</span>
      <button type="button" class="quiet" onClick={leave} disabled={isBusy}>Sign out</button>
      {failure !== null && <span class="tone-danger" role="alert">You are still signed in: {failure}</span>}
    </span>
  );
}

function Controls({ hasFilters }: { hasFilters: boolean }) {
  const { route } = useRoute();
  const { data: names } = useEndpoint<Names>(hasFilters ? "names" : null, { from: route.params.get("from"), to: route.params.get("to") });
  return (
    <div class="controls" role="group" aria-label="What is shown">
      {hasFilters && <Choice name="service" all="All services" label="Service" known={names?.services ?? []} />}
      {hasFilters && <Choice name="environment" all="All environments" label="Environment" known={names?.environments ?? []} />}
      <span class="controls-gap" />
      <RangePicker />
      <Refresh />
    </div>
  );
}

/** A filter that holds for every view. */
function Choice({ name, all, label, known }: {
  name: "service" | "environment";
  all: string;
  label: string;
  known: readonly string[];
}) {
  const { here, all: values } = useRoute();
  const chosen = values(name);
  const options = [...new Set([...known, ...chosen.filter((value) => value !== "")])];
  const change = (value: string) => navigate(here({ [name]: value === ALL ? null : value === NONE ? "" : value, offset: null }));
  const value = chosen.length === 0 ? ALL : chosen.length > 1 ? SEVERAL : chosen[0] === "" ? NONE : (chosen[0] ?? ALL);
  return (
    <label class="choice">
      <span class="visually-hidden">{label}</span>
      <select value={value} onChange={(event) => change(event.currentTarget.value)} data-active={chosen.length > 0}>
        <option value={ALL}>{all}</option>
        {chosen.length > 1 && <option value={SEVERAL}>{`${chosen.length} chosen`}</option>}
        {chosen[0] === "" && <option value={NONE}>None named</option>}
        {options.map((option) => <option key={option} value={option}>{option}</option>)}
      </select>
    </label>
  );
}

/** Values of options that no sender can choose: names have no control characters. */
const [ALL, SEVERAL, NONE] = ["\u0001all", "\u0001several", "\u0001none"];

function RangePicker() {
  const { range, here } = useRoute();
  const menu = useRef<HTMLDetailsElement>(null);
  const now = Date.now();
  const go = (next: { from: string; to: string }) => {
    if (menu.current !== null) menu.current.open = false;
    navigate(here({ from: next.from, to: next.to, offset: null }));
  };
  useClosing(menu);
  return (
    <div class="range">
      <button type="button" class="icon" aria-label="Earlier" title="Earlier" onClick={() => go(shifted(range, -1, now))}>‹</button>
      <details class="menu" ref={menu}>
        <summary aria-label={`Time range: ${describe(range, now)}`}>{describe(range, now)}</summary>
        <div class="menu-body">
          <ul class="presets">
            {PRESETS.map((preset) => (
              <li key={preset.from}>
                <button type="button" aria-pressed={range.from === preset.from && isLive(range)}
                  onClick={() => go({ from: preset.from, to: "now" })}>{preset.label}</button>
              </li>
            ))}
          </ul>
          <CustomRange key={`${range.from} ${range.to}`} onChosen={go} />
        </div>
      </details>
      <button type="button" class="icon" aria-label="Later" title="Later" disabled={isLive(range)}
        onClick={() => go(shifted(range, 1, now))}>›</button>
      <button type="button" class="icon" aria-label="Zoom out" title="Zoom out" onClick={() => go(widened(range, now))}>⊖</button>
    </div>
  );
}

/** A menu closes on Escape, and when one goes elsewhere. */
function useClosing(menu: { current: HTMLDetailsElement | null }): void {
  useEffect(() => {
    const close = (event: Event) => {
      const open = menu.current;
      if (open === null || !open.open) return;
      if (event instanceof KeyboardEvent) {
        if (event.key !== "Escape") return;
        open.querySelector("summary")?.focus();
        open.open = false;
      } else if (event.target instanceof Node && !open.contains(event.target)) {
        open.open = false;
      }
    };
    const kinds = ["keydown", "pointerdown", "focusin"] as const;
    for (const kind of kinds) document.addEventListener(kind, close);
    return () => {
      for (const kind of kinds) document.removeEventListener(kind, close);
    };
  }, [menu]);
}

function CustomRange({ onChosen }: { onChosen: (range: { from: string; to: string }) => void }) {
  const { range } = useRoute();
  const ends = resolve(range, Date.now());
  const submit = (event: SubmitEvent) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget as HTMLFormElement);
    const read = (name: string) => Date.parse(String(form.get(name)));
    const [from, to] = [read("from"), read("to")];
    const field = (event.currentTarget as HTMLFormElement).elements.namedItem("to") as HTMLInputElement;
    field.setCustomValidity(from < to ? "" : "The end must be later than the start.");
    if (field.reportValidity() && parseTime(new Date(from).toISOString(), 0) !== null) onChosen(absolute(from, to));
  };
  return (
    <form class="custom-range" onSubmit={submit}>
      <label>From <input type="datetime-local" name="from" required value={toInput(ends.from)} /></label>
      <label>To <input type="datetime-local" name="to" required value={toInput(ends.to)}
        onInput={(event) => event.currentTarget.setCustomValidity("")} /></label>
      <button type="submit" class="primary">Show this range</button>
    </form>
  );
}

const RATES: readonly [string, string][] = [
  ["off", "No refresh"], ["10", "Every 10 s"], ["30", "Every 30 s"], ["60", "Every minute"], ["300", "Every 5 min"],
];

function Refresh() {
  const { refresh } = useApp();
  const { route, range, here } = useRoute();
  const seconds = refreshSeconds(route, range);
  return (
    <div class="refresh">
      <button type="button" class="icon" aria-label="Refresh now" title="Refresh now" onClick={refresh}>⟳</button>
      <label>
        <span class="visually-hidden">Refresh</span>
        <select value={seconds === 0 ? "off" : String(seconds)} disabled={!isLive(range)}
          title={isLive(range) ? undefined : "A range that has ended does not change"}
          onChange={(event) => navigate(here({ refresh: event.currentTarget.value === "30" ? null : event.currentTarget.value }))}>
          {RATES.map(([value, name]) => <option key={value} value={value}>{name}</option>)}
          {!RATES.some(([value]) => value === String(seconds)) && seconds !== 0 && (
            <option value={String(seconds)}>{`Every ${seconds} s`}</option>
          )}
        </select>
      </label>
    </div>
  );
}
