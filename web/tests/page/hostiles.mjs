// Texts of senders are shown as texts: every view of a server in which each field that a sender chooses holds script, markup
// and control characters.

import assert from "node:assert/strict";
import { nothingSmuggled } from "./looks.mjs";

/** A part of each payload. */
const PAYLOAD = "<script>alert(1)</script>";

const VIEWS = [
  { name: "overview", route: "" },
  { name: "groups", route: "groups" },
  { name: "group", route: "groups", open: "table.data tbody a[href*='groups/']" },
  { name: "events", route: "events" },
  { name: "event", route: "events?kind=error", open: "table.data tbody td a[href*='events/']" },
  { name: "services", route: "services" },
  { name: "service", route: "services", open: "table.data tbody a[href*='service=']" },
  { name: "quotas", route: "quotas" },
  { name: "trust", route: "trust", also: ["table[class] td .state", ".funnel a.num"] },
  { name: "live", route: "live", also: ["table.data tbody tr"] },
  { name: "sql", route: `sql?sql=${encodeURIComponent("SELECT * FROM events")}`, also: ["table.rows tbody tr"] },
  { name: "rejects", route: `sql?sql=${encodeURIComponent("SELECT * FROM rejects")}`, also: ["table.rows tbody tr"] },
  { name: "search", route: `events?q=${encodeURIComponent(PAYLOAD)}&service=${encodeURIComponent(PAYLOAD)}` },
];

export function hostiles({ hostile }) {
  return VIEWS.map((view) => ({ name: `hostile texts in ${view.name} are texts`, at: hostile, run: (window) => isText(window, view) }));
}

async function isText({ go, page, settled, shot }, view) {
  await go(view.route);
  if (view.open !== undefined) {
    await page.locator(view.open).first().click();
    await page.waitForFunction((before) => location.hash !== before, `#/${view.route}`);
    await settled();
  }
  for (const selector of view.also ?? []) await page.locator(selector).first().waitFor({ state: "attached" });
  await page.waitForFunction((payload) => document.getElementById("main").textContent.includes(payload), PAYLOAD);
  await nothingSmuggled(page);
  await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
  await shot(`hostile-${view.name}`);
  const over = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
  assert.ok(over <= 0, `the page does not scroll sideways (${over} pixels)`);
}
