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
}

export function looks({ firstChart }) {
  return [
    ...VIEWS.map((view) => ({ name: `${view.name} has data`, run: (window) => hasData(window, view, "light") })),
    ...VIEWS.map((view) => ({ name: `${view.name} is dark when the system is`, settings: { colorScheme: "dark" }, run: (window) => isDark(window, view) })),
    ...VIEWS.map((view) => ({ name: `${view.name} fits 390 pixels`, settings: { viewport: { width: 390, height: 844 }, hasTouch: true }, run: (window) => fits(window, view) })),
    { name: "axe finds nothing serious in light", run: (window) => accessible(window) },
    { name: "axe finds nothing serious in dark", settings: { colorScheme: "dark" }, run: (window) => accessible(window) },
    { name: "the theme can be chosen and stays", run: theme },
    { name: "the first view paints soon", run: (window) => paints(window, firstChart) },
  ];
}

async function hasData(window, view, look) {
  await visit(window, view);
  for (const selector of view.has) await window.page.locator(selector).first().waitFor({ state: "attached" });
  await window.page.waitForTimeout(250);
  await window.shot(`${view.name}-${look}`);
  await nothingSmuggled(window.page);
}

/** Texts of senders are texts: no element is made of them. */
async function nothingSmuggled(page) {
  const found = await page.evaluate(() => ({
    scripts: [...document.scripts].filter((each) => !each.src.endsWith("/assets/app.js")).length,
    images: document.querySelectorAll("img, iframe, object, embed, style").length,
    unseen: /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e]/.test(document.body.innerText),
    handlers: [...document.querySelectorAll("*")].filter((each) => [...each.attributes].some((attribute) => attribute.name.startsWith("on"))).length,
  }));
  assert.deepEqual(found, { scripts: 0, images: 0, unseen: false, handlers: 0 });
}

async function isDark(window, view) {
  await visit(window, view);
  await window.page.locator(view.has[0]).first().waitFor({ state: "attached" });
  await window.page.waitForTimeout(250);
  await window.shot(`${view.name}-dark`);
  const brightness = await window.page.evaluate(() => {
    const [red, green, blue] = getComputedStyle(document.documentElement).backgroundColor.match(/[\d.]+/g).map(Number);
    return (red + green + blue) / 3;
  });
  assert.ok(brightness < 64, `the background is dark (${brightness})`);
}

async function fits(window, view) {
  await visit(window, view);
  await window.page.locator(view.has[0]).first().waitFor({ state: "attached" });
  await window.page.waitForTimeout(250);
  await window.shot(`${view.name}-phone`);
  const over = await window.page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
  assert.ok(over <= 0, `the page does not scroll sideways (${over} pixels)`);
}

async function accessible(window) {
  const serious = [];
  for (const view of VIEWS) {
    await visit(window, view);
    await window.page.locator(view.has[0]).first().waitFor({ state: "attached" });
    const { violations } = await runAxe(window.page);
    for (const { id, impact, nodes } of violations) {
      if (["serious", "critical"].includes(impact)) serious.push(`${view.name}: ${id} (${impact}): ${nodes.slice(0, 3).map((node) => `${node.target} ${node.failureSummary}`).join(" | ")}`);
    }
  }
  assert.deepEqual(serious, []);
  return `${VIEWS.length} views`;
}

/** The debugger puts axe into the page: the page's own policy lets no other script in. */
async function runAxe(page) {
  await page.evaluate(axe);
  return page.evaluate(() => window.axe.run(document, { resultTypes: ["violations"] }));
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
