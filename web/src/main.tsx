/** The page: signs in if it must, then shows the view that the address names. */

import "./styles/index.css";
import { render } from "preact";
import { useEffect, useErrorBoundary, useMemo, useRef, useState } from "preact/hooks";
import type { Session } from "./api";
import { Failure, session as askSession, whenSignedOut } from "./core/client";
import { AppContext, refreshSeconds, useApp, useHash, useRoute, useTicks, useTitle } from "./core/hooks";
import { rangeOf } from "./core/url";
import { applyTheme, storedTheme } from "./core/theme";
import { showUnseen } from "./core/visible";
import type { Theme } from "./core/theme";
import { Header } from "./components/header";
import { Empty, Failed, Loading } from "./components/states";
import { CodesView } from "./views/codes";
import { EventView } from "./views/event";
import { EventsView } from "./views/events";
import { GroupView } from "./views/group";
import { GroupsView } from "./views/groups";
import { LiveView } from "./views/live";
import { OverviewView } from "./views/overview";
import { QuotasView } from "./views/quotas";
import { ServicesView } from "./views/services";
import { SignInView } from "./views/sign-in";
import { SqlView } from "./views/sql";
import { TrustView } from "./views/trust";

function Page() {
  const route = useHash();
  const [tick, refresh] = useTicks(refreshSeconds(route, rangeOf(route, Date.now())));
  const [theme, setTheme] = useState<Theme>(storedTheme());
  const [session, setSession] = useSession();
  const system = useSystemTheme();
  const app = { route, tick, refresh, theme: `${theme} ${system}` };
  const choose = (next: Theme) => {
    applyTheme(next);
    setTheme(next);
  };
  return (
    <AppContext.Provider value={app}>
      <Contents session={session} setSession={setSession} theme={theme} setTheme={choose} />
    </AppContext.Provider>
  );
}

type SessionState = Session | Failure | null;

/** Who is signed in; asked again when the server says that nobody is. */
function useSession(): [SessionState, (session: SessionState) => void] {
  const [session, setSession] = useState<SessionState>(null);
  const ask = () => askSession().then(setSession, (error: unknown) =>
    setSession(error instanceof Failure ? error : new Failure(0, "page", String(error))));
  useEffect(() => {
    whenSignedOut(() => setSession((it) => (it === null || it instanceof Failure ? it : { ...it, required: true, signed_in: false })));
    void ask();
  }, []);
  // A server that is being started is requested until it responds.
  useEffect(() => {
    if (!(session instanceof Failure)) return undefined;
    const timer = setTimeout(() => void ask(), 3000);
    return () => clearTimeout(timer);
  }, [session]);
  return [session, setSession];
}

/** Grows when the system changes between light and dark, so that canvases are drawn anew. */
function useSystemTheme(): string {
  const dark = useMemo(() => matchMedia("(prefers-color-scheme: dark)"), []);
  const [isDark, setDark] = useState(dark.matches);
  useEffect(() => {
    const change = () => setDark(dark.matches);
    dark.addEventListener("change", change);
    return () => dark.removeEventListener("change", change);
  }, [dark]);
  return isDark ? "dark" : "light";
}

function Contents({ session, setSession, theme, setTheme }: {
  session: SessionState;
  setSession: (session: SessionState) => void;
  theme: Theme;
  setTheme: (theme: Theme) => void;
}) {
  const main = useRef<HTMLElement>(null);
  const { route } = useRoute();
  const path = route.path.join("/");
  const isFirst = useRef(true);
  // Another view begins at its top, and with the focus there, as another page would.
  useEffect(() => {
    if (isFirst.current) {
      isFirst.current = false;
      return;
    }
    scrollTo(0, 0);
    main.current?.focus({ preventScroll: true });
  }, [path]);
  if (session === null) return <main id="main" class="view"><h1 class="visually-hidden">Faultline</h1><Loading /></main>;
  if (session instanceof Failure) return <main id="main" class="view"><h1>Faultline</h1><Failed failure={session} /></main>;
  if (session.required && !session.signed_in) return <SignInView onSignedIn={setSession} />;
  const signedOut = () => setSession({ ...session, signed_in: false, name: null, scopes: [], csrf: null });
  return (
    <>
      <a class="skip" href="#main" onClick={(event) => {
        event.preventDefault();
        main.current?.focus();
      }}>Skip to the contents</a>
      <Header session={session} theme={theme} setTheme={setTheme} onSignOut={signedOut} />
      <main id="main" class="view" ref={main} tabIndex={-1}><View /></main>
      <footer class="foot">Faultline {session.version}. Times are those of this browser.</footer>
    </>
  );
}

/** The view of the address. One that throws says so, until another is opened or the data is fetched again. */
function View() {
  const { route, tick } = useApp();
  const [error, reset] = useErrorBoundary((thrown: unknown) => console.error(thrown));
  useEffect(reset, [route.path.join("/"), tick]);
  if (error !== undefined) {
    return <><h1>Faultline</h1><Failed failure={new Failure(0, "page", `This view cannot be shown: ${String(error)}`)} /></>;
  }
  return <NamedView path={route.path} />;
}

function NamedView({ path }: { path: readonly string[] }) {
  const [view, name] = path;
  switch (view) {
    case undefined:
    case "overview": return <OverviewView />;
    case "groups": return name === undefined ? <GroupsView /> : <GroupView key={name} fingerprint={name} />;
    case "events": return name === undefined ? <EventsView /> : <EventView key={name} id={name} />;
    case "services": return <ServicesView />;
    case "quotas": return <QuotasView />;
    case "trust": return <TrustView />;
    case "live": return <LiveView />;
    case "codes": return <CodesView canonical={name} />;
    case "sql": return <SqlView />;
    default: return <NotFound />;
  }
}

function NotFound() {
  const { link } = useRoute();
  useTitle("No such view");
  return (
    <>
      <h1>There is no such view</h1>
      <Empty title="The address names none that Faultline has."><a href={link([])}>Go to the overview</a></Empty>
    </>
  );
}

showUnseen();
applyTheme(storedTheme());
const root = document.getElementById("app");
if (root !== null) render(<Page />, root);
