/** Beside the editor: the cookbook, and the tables with their columns. */

import type { Schema } from "../api";
import { useRoute } from "../core/hooks";

export function Cookbook({ schema, open }: { schema: Schema | null; open: boolean }) {
  const { link } = useRoute();
  if (schema === null || schema.cookbook.length === 0) return null;
  const sections = [...new Set(schema.cookbook.map((recipe) => recipe.section))];
  return (
    <details class="panel" open={open}>
      <summary><h2>Cookbook</h2></summary>
      {sections.map((section) => (
        <section key={section}>
          <h3>{section}</h3>
          <ul class="list list-tight">
            {schema.cookbook.filter((recipe) => recipe.section === section).map((recipe) => (
              <li key={recipe.title}><a href={link(["sql"], { sql: recipe.sql })} title={recipe.about}>{recipe.title}</a></li>
            ))}
          </ul>
        </section>
      ))}
    </details>
  );
}

export function Tables({ schema, onInsert }: { schema: Schema | null; onInsert: (name: string) => void }) {
  if (schema === null) return null;
  return (
    <details class="panel">
      <summary><h2>Tables and views</h2></summary>
      {schema.tables.map((table) => (
        <details key={table.name} class="table-names">
          <summary><code>{table.name}</code></summary>
          <p class="muted">{table.about}</p>
          <ul class="columns">
            {table.columns.map((column) => (
              <li key={column.name}>
                <button type="button" class="quiet mono" title={column.about} onClick={() => onInsert(column.name)}>{column.name}</button>
                <span class="muted">{column.type}</span>
              </li>
            ))}
          </ul>
        </details>
      ))}
    </details>
  );
}
