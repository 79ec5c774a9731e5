/** Filters as the address holds them: chips to take away, and forms to add. */

import { useEffect, useRef, useState } from "preact/hooks";
import { navigate, useRoute } from "../core/hooks";
import { CATEGORIES, categoryName, FILTER_NAMES, filterValue } from "../core/words";

/** Every filter that is set, each with a way to take it away. Those of the page's head stand there already. */
export function FilterChips({ names }: { names: readonly string[] }) {
  const { route, here } = useRoute();
  const chips = names.flatMap((name) => route.params.getAll(name).map((value) => ({ name, value })));
  if (chips.length === 0) return null;
  const without = (name: string, value: string) =>
    here({ [name]: route.params.getAll(name).filter((it) => it !== value), offset: null });
  const none = Object.fromEntries(names.map((name) => [name, null]));
  return (
    <ul class="chips" aria-label="Filters">
      {chips.map(({ name, value }) => (
        <li key={`${name} ${value}`}>
          <a class="chip" href={without(name, value)} aria-label={`Remove filter ${FILTER_NAMES[name] ?? name}: ${filterValue(name, value)}`}>
            <span class="chip-name">{FILTER_NAMES[name] ?? name}</span> {filterValue(name, value)} <span aria-hidden="true">✕</span>
          </a>
        </li>
      ))}
      {chips.length > 1 && <li><a class="chip-clear" href={here({ ...none, offset: null })}>Clear all</a></li>}
    </ul>
  );
}

/** A search field that changes the address when one stops typing. */
export function Search({ name = "q", label, placeholder }: { name?: string; label: string; placeholder: string }) {
  const { param, here } = useRoute();
  const inAddress = param(name) ?? "";
  const [text, setText] = useState(inAddress);
  const timer = useRef(0);
  const latest = useRef(here);
  latest.current = here;
  useEffect(() => setText(inAddress), [inAddress]);
  useEffect(() => () => clearTimeout(timer.current), []);
  const apply = (value: string) => navigate(latest.current({ [name]: value.trim() === "" ? null : value.trim(), offset: null }), true);
  const type = (value: string) => {
    setText(value);
    clearTimeout(timer.current);
    timer.current = window.setTimeout(() => apply(value), 300);
  };
  return (
    <form role="search" class="search" onSubmit={(event) => {
      event.preventDefault();
      clearTimeout(timer.current);
      apply(text);
    }}>
      <label class="visually-hidden" for={`search-${name}`}>{label}</label>
      <input id={`search-${name}`} type="search" value={text} placeholder={placeholder} autocomplete="off" spellcheck={false}
        onInput={(event) => type(event.currentTarget.value)} />
    </form>
  );
}

/** One of a few values, or any. */
export function Select({ name, label, any, options }: {
  name: string;
  label: string;
  any: string;
  options: readonly (readonly [string, string])[];
}) {
  const { param, here } = useRoute();
  const value = param(name) ?? "";
  return (
    <label class="choice">
      <span class="visually-hidden">{label}</span>
      <select value={value} data-active={value !== ""}
        onChange={(event) => navigate(here({ [name]: event.currentTarget.value === "" ? null : event.currentTarget.value, offset: null }))}>
        <option value="">{any}</option>
        {options.map(([each, text]) => <option key={each} value={each}>{text}</option>)}
        {value !== "" && !options.some(([each]) => each === value) && <option value={value}>{value}</option>}
      </select>
    </label>
  );
}

export const CATEGORY_OPTIONS: readonly (readonly [string, string])[] =
  CATEGORIES.map((category) => [category, categoryName(category)] as const);

export const HIDDEN_OPTIONS: readonly (readonly [string, string])[] = [
  ["true", "Hidden failures only"], ["false", "Without hidden failures"],
];
