// The numbers on the page equal those of SQL and of /metrics for the same range. The server must have counted everything
// that it stores: the one with the hostile texts was empty when it started, a moment ago.

import assert from "node:assert/strict";
import { number } from "./checks.mjs";

export function counted({ hostile, token }) {
  return [{ name: "numbers equal SQL and /metrics for the same range", at: hostile, run: (window) => isCountedAlike(window, token) }];
}

/** The life of the server. */
const HOURS = 6;

async function isCountedAlike(window, token) {
  const { base } = window;
  // As a program does it: with the token, and not with the session of the browser.
  const headers = { Authorization: `Bearer ${token}`, "Content-Type": "application/json" };
  const ask = async (path, init = {}) => {
    const response = await fetch(`${base}${path}`, { headers, ...init });
    assert.equal(response.status, 200, path);
    return response.text();
  };
  const iso = (time) => new Date(time).toISOString();
  const [from, to] = [iso(Date.now() - HOURS * 3600e3), iso(Date.now() + 60e3)];
  const range = `from=${from}&to=${to}`;
  const within = `time >= '${from}' AND time < '${to}'`;
  const sql = async (query) => JSON.parse(await ask("/api/v1/sql", { method: "POST", body: JSON.stringify({ query }) })).rows;
  const samples = samplesOf(await ask("/metrics"));
  const metric = (name, labels = {}) => samples
    .filter((each) => each.name === name && Object.entries(labels).every(([label, value]) => each.labels[label] === value))
    .reduce((sum, { value }) => sum + value, 0);

  const shown = await onPage(window, range);
  const [all] = await sql(`SELECT count(*) AS errors, sum(CASE WHEN hidden THEN 1 ELSE 0 END) AS hidden FROM errors WHERE ${within}`);
  assert.ok(shown.errors > 10, `there are errors (${shown.errors})`);
  assert.deepEqual([shown.errors, shown.hidden], [all.errors, all.hidden]);
  assert.equal(shown.errors, metric("faultline_category_events_total", { kind: "error" }));

  const categories = await sql(`SELECT category, count(*) AS errors FROM errors WHERE ${within} GROUP BY category`);
  assert.deepEqual(shown.categories, Object.fromEntries(categories.map(({ category, errors }) => [category, errors])));
  for (const [category, errors] of Object.entries(shown.categories)) {
    assert.equal(errors, metric("faultline_category_events_total", { kind: "error", category }), category);
  }

  const services = await sql(`SELECT coalesce(service, '') AS service, count(*) AS errors FROM errors WHERE ${within} GROUP BY 1`);
  assert.deepEqual(shown.services, Object.fromEntries(services.map(({ service, errors }) => [service, errors])));
  const groups = await sql(`SELECT fingerprint, count(*) AS errors FROM errors WHERE ${within} GROUP BY fingerprint`);
  assert.deepEqual(shown.groups, Object.fromEntries(groups.map(({ fingerprint, errors }) => [fingerprint, errors])));
  const [denials] = await sql(`SELECT count(*) AS denials FROM trust_denials WHERE ${within}`);
  assert.equal(shown.denials, denials.denials);
  assert.equal(shown.denials, metric("faultline_trust_denials_total") + metric("faultline_danger_denials_total"));
  return `${shown.errors} errors in ${groups.length} groups, ${shown.denials} denials`;
}

/** The numbers of the overview, the services, the groups and the denials. */
async function onPage({ go, page }, range) {
  const links = (selector) => page.locator(selector).evaluateAll((all) => all.map((link) => [
    Object.fromEntries(new URLSearchParams(link.getAttribute("href").split("?")[1] ?? "")), link.getAttribute("href"), link.innerText,
  ]));
  await go(`?${range}`);
  const notes = await links(".panel-hidden .big-note a.num");
  const noted = (isHidden) => notes.filter(([query]) => (query.hidden === "true") === isHidden).reduce((sum, [, , text]) => sum + number(text), 0);
  const [errors, hidden] = [noted(false), noted(true)];
  const legend = await links(".panel-wide .legend a.num");
  const categories = Object.fromEntries(legend.map(([query, , text]) => [query.category, number(text)]));
  await go(`services?${range}`);
  const failures = (await links("table.data tbody a.num")).filter(([query]) => query.hidden === undefined);
  const services = Object.fromEntries(failures.map(([query, , text]) => [query.service ?? "", number(text)]));
  await go(`groups?${range}`);
  const counts = (await links("table.data tbody a.num")).filter(([query]) => query.fingerprint !== undefined);
  const groups = Object.fromEntries(counts.map(([query, , text]) => [query.fingerprint, number(text)]));
  await go(`trust?${range}`);
  const denials = (await links(".panel-wide .panel-actions a.num"))[0][2];
  return { errors, hidden, categories, services, groups, denials: number(denials) };
}

/** The samples of /metrics. */
function samplesOf(text) {
  const found = text.split("\n").map((line) => /^(\w+)(?:\{(.*)\})? (\S+)$/.exec(line)).filter((each) => each !== null);
  const labels = (inside) => [...(inside ?? "").matchAll(/(\w+)="((?:\\.|[^"\\])*)"/g)].map(([, label, value]) => [label, value]);
  return found.map(([, name, inside, value]) => ({ name, value: Number(value), labels: Object.fromEntries(labels(inside)) }));
}
