/** Queries in SQL: an editor, the result as a table and a chart, and the cookbook beside it. */

import { useEffect, useRef, useState } from "preact/hooks";
import type { Schema, SqlResult } from "../api";
import { Failed, Loading } from "../components/states";
import { Failure, postJson } from "../core/client";
import { navigate, useEndpoint, useRoute, useTitle } from "../core/hooks";
import type { SqlEditor } from "../editor/editor";
import { Cookbook, Tables } from "./sql-side";
import { Result } from "./sql-result";

/** Rows that the page asks for; downloads have all. */
const MOST_ROWS = 5000;

type Run = { state: "idle" } | { state: "running" } | { state: "failed"; failure: Failure } | { state: "done"; result: SqlResult; sql: string };

export function SqlView() {
  useTitle("SQL");
  const { param, link } = useRoute();
  const inAddress = param("sql") ?? "";
  const [text, setText] = useState(inAddress);
  const [run, setRun] = useState<Run>({ state: "idle" });
  const running = useRef<AbortController | null>(null);
  const editor = useRef<SqlEditor | null>(null);
  const { data: schema } = useEndpoint<Schema>("schema", {});

  const execute = (statement: string) => {
    running.current?.abort();
    if (statement.trim() === "") return setRun({ state: "idle" });
    const abort = new AbortController();
    running.current = abort;
    setRun({ state: "running" });
    postJson("sql", { query: statement, max_rows: MOST_ROWS }, "application/json", abort.signal)
      .then(async (response) => (await response.json()) as SqlResult)
      .then((result) => setRun({ state: "done", result, sql: statement }))
      .catch((error: unknown) => {
        if (abort.signal.aborted) return;
        setRun({ state: "failed", failure: error instanceof Failure ? error : new Failure(0, "page", String(error)) });
      });
  };
  // The statement of the address is run: by opening it, by Back, and by a click in the cookbook.
  useEffect(() => {
    setText(inAddress);
    editor.current?.setText(inAddress);
    execute(inAddress);
    return () => running.current?.abort();
  }, [inAddress]);

  const submit = () => {
    const statement = editor.current?.text() ?? text;
    if (statement === inAddress) execute(statement);
    else navigate(link(["sql"], { sql: statement }));
  };
  const stop = () => {
    running.current?.abort();
    setRun({ state: "idle" });
  };
  return (
    <>
      <h1>SQL</h1>
      <div class="sql">
        <div class="sql-main">
          <Editor initial={inAddress} schema={schema} editor={editor} onChange={setText} onRun={submit} />
          <div class="toolbar">
            <button type="button" class="primary" onClick={submit} disabled={text.trim() === ""}>Run</button>
            {run.state === "running" && <button type="button" onClick={stop}>Stop</button>}
            <span class="muted">Ctrl + Enter runs. Statements can only read.</span>
          </div>
          <Outcome run={run} schema={schema} />
        </div>
        <div class="sql-side">
          <Cookbook schema={schema} open={inAddress === ""} />
          <Tables schema={schema} onInsert={(name) => editor.current?.insert(name)} />
        </div>
      </div>
    </>
  );
}

function Outcome({ run, schema }: { run: Run; schema: Schema | null }) {
  if (run.state === "running") return <Loading rows={4} />;
  if (run.state === "failed") return <SqlFailed failure={run.failure} />;
  if (run.state === "done") return <Result result={run.result} sql={run.sql} formats={schema?.formats ?? []} />;
  return <div class="empty"><p class="empty-title">No query yet</p><p>Write a statement, or take one from the cookbook.</p></div>;
}

function SqlFailed({ failure }: { failure: Failure }) {
  const { position } = failure;
  return (
    <>
      {position !== null && <p class="muted">Line {position.line}, column {position.column}:</p>}
      <Failed failure={failure} />
    </>
  );
}

/** The editor once it is loaded; until then, and should that fail, a plain text field that does the same. */
function Editor({ initial, schema, editor, onChange, onRun }: {
  initial: string;
  schema: Schema | null;
  editor: { current: SqlEditor | null };
  onChange: (text: string) => void;
  onRun: () => void;
}) {
  const host = useRef<HTMLDivElement>(null);
  const plain = useRef<HTMLTextAreaElement>(null);
  const latest = useRef({ onChange, onRun });
  latest.current = { onChange, onRun };
  const [isLoaded, setLoaded] = useState(false);
  useEffect(() => {
    let made: SqlEditor | null = null;
    let isGone = false;
    void loadEditor().then(({ createSqlEditor }) => {
      if (isGone || host.current === null) return;
      made = createSqlEditor(host.current, {
        text: plain.current?.value ?? initial,
        label: "SQL statement",
        onChange: (text) => latest.current.onChange(text),
        onRun: () => latest.current.onRun(),
      });
      editor.current = made;
      setLoaded(true);
    }, () => undefined);
    return () => {
      isGone = true;
      made?.destroy();
      editor.current = null;
    };
  }, []);
  useEffect(() => {
    if (isLoaded && schema !== null) editor.current?.setSchema(schema);
  }, [isLoaded, schema]);
  return (
    <div class="editor-box">
      {!isLoaded && (
        <textarea ref={plain} class="editor-plain" aria-label="SQL statement" defaultValue={initial} spellcheck={false} rows={7}
          onInput={(event) => onChange(event.currentTarget.value)}
          onKeyDown={(event) => {
            if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) onRun();
          }} />
      )}
      <div ref={host} class="editor" hidden={!isLoaded} />
    </div>
  );
}

/** The bundle beside this one. */
function loadEditor(): Promise<typeof import("../editor/editor")> {
  return import("./editor.js" as string) as Promise<typeof import("../editor/editor")>;
}
