/**
 * The SQL editor: a bundle of its own, loaded when it is first shown.
 *
 * It lives in a shadow root, because CodeMirror adopts style sheets there, which a strict Content-Security-Policy allows;
 * in the document it would insert a style element, which the policy forbids. Its colours are CSS variables of the page.
 */

import { autocompletion, closeBrackets, closeBracketsKeymap, completeFromList, completionKeymap } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import { PostgreSQL, sql } from "@codemirror/lang-sql";
import { bracketMatching, HighlightStyle, syntaxHighlighting } from "@codemirror/language";
import { Compartment, EditorState, Prec } from "@codemirror/state";
import type { Extension } from "@codemirror/state";
import { drawSelection, EditorView, highlightSpecialChars, keymap, lineNumbers, placeholder } from "@codemirror/view";
import { tags } from "@lezer/highlight";
import type { Schema } from "../api";

export interface SqlEditor {
  text: () => string;
  setText: (text: string) => void;
  setSchema: (schema: Schema) => void;
  insert: (text: string) => void;
  destroy: () => void;
}

export interface SqlEditorOptions {
  text: string;
  label: string;
  onChange: (text: string) => void;
  onRun: () => void;
}

const highlight = HighlightStyle.define([
  { tag: tags.keyword, color: "var(--code-keyword)", fontWeight: "600" },
  { tag: [tags.string, tags.special(tags.string)], color: "var(--code-string)" },
  { tag: [tags.number, tags.bool, tags.null], color: "var(--code-number)" },
  { tag: tags.comment, color: "var(--muted)", fontStyle: "italic" },
  { tag: [tags.typeName, tags.standard(tags.name)], color: "var(--code-type)" },
]);

const look = EditorView.theme({
  "&": { color: "var(--text)", backgroundColor: "var(--surface)", fontSize: "13px", minHeight: "150px", maxHeight: "45vh", borderRadius: "6px" },
  "&.cm-focused": { outline: "2px solid var(--focus)", outlineOffset: "1px" },
  ".cm-scroller": { fontFamily: "var(--mono)", lineHeight: "1.55", overflow: "auto", minHeight: "150px" },
  ".cm-content": { caretColor: "var(--text)" },
  ".cm-cursor": { borderLeftColor: "var(--text)" },
  ".cm-gutters": { backgroundColor: "var(--surface)", color: "var(--muted)", border: "none" },
  ".cm-placeholder": { color: "var(--muted)" },
  "&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground": { backgroundColor: "var(--selection)" },
  ".cm-tooltip": { backgroundColor: "var(--surface)", color: "var(--text)", border: "1px solid var(--border-strong)", borderRadius: "6px" },
  ".cm-tooltip.cm-tooltip-autocomplete > ul > li": { padding: "3px 8px" },
  ".cm-tooltip.cm-tooltip-autocomplete > ul > li[aria-selected]": { backgroundColor: "var(--accent)", color: "var(--on-accent)" },
  ".cm-tooltip-autocomplete ul li[aria-selected] .cm-completionDetail": { color: "var(--on-accent)" },
  ".cm-completionDetail": { color: "var(--muted)", fontStyle: "normal", marginLeft: "1em" },
  ".cm-completionInfo": { maxWidth: "320px", padding: "6px 8px" },
});

/**
 * Typing over a selection, done by the editor itself. Chromium would keep the look of what it replaces by an inline style,
 * which the policy forbids and the console complains about.
 */
const typeOverSelection = EditorView.domEventHandlers({
  beforeinput: (event, view) => {
    const { main } = view.state.selection;
    const text = event.data;
    if (event.inputType !== "insertText" || text === null || main.empty || view.composing) return false;
    const replace = () => view.state.update(view.state.replaceSelection(text), { userEvent: "input.type", scrollIntoView: true });
    const isHandled = view.state.facet(EditorView.inputHandler).some((handler) => handler(view, main.from, main.to, text, replace));
    if (!isHandled) view.dispatch(replace());
    return true;
  },
});

export function createSqlEditor(host: HTMLElement, options: SqlEditorOptions): SqlEditor {
  const root = host.shadowRoot ?? host.attachShadow({ mode: "open" });
  root.replaceChildren();
  const language = new Compartment();
  const run = Prec.highest(keymap.of([{ key: "Mod-Enter", run: () => (options.onRun(), true), preventDefault: true }]));
  const state = EditorState.create({
    doc: options.text,
    extensions: [
      run, typeOverSelection, lineNumbers(), highlightSpecialChars(), history(), drawSelection(), bracketMatching(), closeBrackets(), autocompletion({ icons: false }),
      keymap.of([...closeBracketsKeymap, ...completionKeymap, ...historyKeymap, ...defaultKeymap]),
      language.of(withSchema(null)), syntaxHighlighting(highlight), look, EditorView.lineWrapping,
      placeholder("SELECT category, count(*) FROM errors GROUP BY category"),
      EditorView.contentAttributes.of({ "aria-label": options.label, spellcheck: "false" }),
      EditorView.updateListener.of((update) => {
        if (update.docChanged) options.onChange(update.state.doc.toString());
      }),
    ],
  });
  const view = new EditorView({ state, parent: root, root });
  return {
    text: () => view.state.doc.toString(),
    setText: (text) => {
      if (text !== view.state.doc.toString()) view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: text } });
    },
    setSchema: (schema) => view.dispatch({ effects: language.reconfigure(withSchema(schema)) }),
    insert: (text) => {
      view.dispatch(view.state.replaceSelection(text));
      view.focus();
    },
    destroy: () => view.destroy(),
  };
}

/** The language, which completes the names of tables, columns and functions. */
function withSchema(schema: Schema | null): Extension {
  const tables = Object.fromEntries((schema?.tables ?? []).map((table) => [table.name, {
    self: { label: table.name, type: "type", info: table.about },
    children: table.columns.map((column) => ({ label: column.name, type: "property", detail: column.type, info: column.about })),
  }]));
  const support = sql({ dialect: PostgreSQL, schema: tables, upperCaseKeywords: true });
  // Columns are offered without their table as well: most statements have only one.
  const columns = (schema?.tables ?? []).flatMap((table) =>
    table.columns.map((column) => ({ label: column.name, type: "property", detail: table.name, info: column.about, boost: -1 })));
  const functions = (schema?.functions ?? []).map((each) => ({ label: each.name, type: "function", info: each.about }));
  const unique = [...new Map(columns.map((column) => [column.label, column])).values()];
  return [support, PostgreSQL.language.data.of({ autocomplete: completeFromList([...unique, ...functions]) })];
}
