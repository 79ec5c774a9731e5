// Every view: that it has data, looks as it should in light, dark and on a phone, and can be used by everybody.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";

const axe = await readFile(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** A view, how to get there, and what it must have when there is data. */
const VIEWS = [
  { name: "overview", route: "", has: [".pair .chart canvas", ".panel-wide canvas", ".bars a.num", ".facts"] },
  { name: "groups", route: "groups", has: ["table.data tbody tr a.num", ".sparkline"] },
  { name: "group", route: "groups", open: "table.data tbody a[href*='groups/']", has: [".chart canvas", ".advice", ".list li", "pre.code"] },
  { name: "events", route: "events?kind=error", has: ["table.data tbody tr", ".chart canvas", ".facet"] },
  { name: "event", route: "events?kind=error", open: "table.data tbody td a[href*='events/']", has: [".facts dd", ".advice"] },
  { name: "services", route: "services", has: ["table.data tbody tr a.num", ".sparkline"] },
  { name: "service", route: "services", open: "table.data tbody a[href*='service=']", has: [".stats dd", ".chart canvas", "table.data tbody tr"] },
  { name: "quotas", route: "quotas?from=-7d", has: [".card .gauge [role=meter]"] },
  { name: "trust", route: "trust?from=-7d", has: [".chart canvas", ".funnel li", "table.data tbody tr a.num"] },
  { name: "live", route: "live", has: ["table.data tbody tr", ".state-ok"] },
  { name: "codes", route: "codes", has: ["table.data tbody tr a.num"] },
  { name: "code", route: "codes", open: "table.data tbody a[href*='codes/']", has: [".advice", "table.data tbody tr"] },
  { name: "sql", route: `sql?sql=${encodeURIComponent("SELECT category, count(*) AS errors FROM errors GROUP BY category")}`, has: [".editor .cm-content", "table.rows tbody tr"] },
];

async function visit({ go, page, settled }, view) {
  await go(view.route);
  if (view.open !== undefined) {
    await page.locator(view.open).first().click();
    await page.waitForFunction((before) => location.hash !== before, `#/${view.route}`);
    await settled();
  }
  for (const selector of view.has) await page.locator(selector).first().waitFor({ state: "attached" });
  await drawn(page);
}

/** What was changed has been drawn: canvases are drawn in an animation frame. */
async function drawn(page) {
  await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
}

export function looks({ firstChart }) {
  return [
    { name: "the first view paints soon", alone: "first", run: (window) => paints(window, firstChart) },
    ...VIEWS.map((view) => ({ name: `${view.name} has data, in light, in dark and 390 pixels wide`, settings: { hasTouch: true }, run: (window) => look(window, view) })),
    { name: "the theme can be chosen and stays", run: theme },
  ];
}

/** One view, loaded once and looked at in every way. */
async function look(window, view) {
  const { page } = window;
  await visit(window, view);
  await window.shot(`${view.name}-light`);
  await nothingSmuggled(page);
  const serious = [...await accessible(page, "light")];
  await page.emulateMedia({ colorScheme: "dark" });
  await drawn(page);
  await window.shot(`${view.name}-dark`);
  const brightness = await page.evaluate(() => {
    const [red, green, blue] = getComputedStyle(document.documentElement).backgroundColor.match(/[\d.]+/g).map(Number);
    return (red + green + blue) / 3;
  });
  assert.ok(brightness < 64, `the background is dark (${brightness})`);
  serious.push(...await accessible(page, "dark"));
  await page.setViewportSize({ width: 390, height: 844 });
  await drawn(page);
  const over = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
  assert.ok(over <= 0, `the page does not scroll sideways (${over} pixels)`);
  await window.shot(`${view.name}-phone-dark`);
  await page.emulateMedia({ colorScheme: "light" });
  await drawn(page);
  await window.shot(`${view.name}-phone`);
  serious.push(...await accessible(page, "narrow"));
  assert.deepEqual(serious, [], "axe finds nothing serious");
}

/** Texts of senders are texts: no element is made of them. */
export async function nothingSmuggled(page) {
  const found = await page.evaluate(() => ({
    scripts: [...document.scripts].filter((each) => !each.src.endsWith("/assets/app.js")).length,
    images: document.querySelectorAll("img, iframe, object, embed, style").length,
    unseen: /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e]/.test(document.body.innerText),
    handlers: [...document.querySelectorAll("*")].filter((each) => [...each.attributes].some((attribute) => attribute.name.startsWith("on"))).length,
  }));
  assert.deepEqual(found, { scripts: 0, images: 0, unseen: false, handlers: 0 });
}

/** What axe calls serious. The debugger puts axe into the page: the page's own policy lets no other script in. */
async function accessible(page, look) {
  if (!await page.evaluate(() => "axe" in window)) await page.evaluate(axe);
  const { violations } = await page.evaluate(() => window.axe.run(document, { resultTypes: ["violations"] }));
  return violations.filter(({ impact }) => ["serious", "critical"].includes(impact)).map(({ id, impact, nodes }) =>
    `${look}: ${id} (${impact}): ${nodes.slice(0, 3).map((node) => `${node.target} ${node.failureSummary}`).join(" | ")}`);
}

async function theme({ go, page }) {
  await go("");
  await page.getByLabel("Theme").selectOption("dark");
  assert.equal(await page.evaluate(() => getComputedStyle(document.documentElement).colorScheme), "dark");
  await page.reload();
  await page.locator("main h1").waitFor();
  assert.equal(await page.evaluate(() => getComputedStyle(document.documentElement).colorScheme), "dark");
}

/** From nothing to the first chart, as a newcomer sees it. */
async function paints({ go, page }, most) {
  const began = performance.now();
  await go("");
  await page.locator(".pair canvas").first().waitFor();
  const took = Math.round(performance.now() - began);
  assert.ok(took < most, `the first chart is there after ${took} ms`);
  return `the first chart after ${took} ms`;
}
