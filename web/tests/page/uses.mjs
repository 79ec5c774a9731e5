// What people do on the page: follow numbers, zoom, filter, ask in SQL, reload, use only the keyboard.

import assert from "node:assert/strict";
import { number, params, past } from "./checks.mjs";

export function uses({ base, guarded, token }) {
  return [
    { name: "numbers of the overview lead to as many events", run: numbersLead },
    { name: "every link of every number has events behind it", run: everyNumber },
    { name: "the number of a group is that of its page and its events", run: groupNumbers },
    { name: "dragging a chart narrows the range, and Back widens it", run: zooms },
    { name: "clicking a bar opens its events", run: clicksBar },
    { name: "filters narrow the events", run: filtersNarrow },
    { name: "the search of groups narrows them", run: groupSearch },
    { name: "older events follow the newest", run: olderEvents },
    { name: "a reload keeps the state", run: reloadKeeps },
    { name: "the range can be chosen, moved and typed", run: ranges },
    { name: "the SQL editor runs, draws, downloads and explains mistakes", run: (window) => sql(window) },
    { name: "the SQL editor completes names", run: completes },
    { name: "the cookbook is one click away", run: cookbook },
    { name: "live events come in and can be filtered", run: live },
    { name: "codes can be searched", run: codes },
    { name: "everything can be reached by the keyboard", run: keyboard },
    { name: "a chart can be zoomed by the keyboard", run: keyboardZoom },
    { name: "a chart can be zoomed by touch", settings: { viewport: { width: 390, height: 844 }, hasTouch: true }, run: touchZoom },
    { name: "data is fetched again by itself", run: refreshes },
    { name: "an empty time says so", run: empty },
    { name: "an error says what to do, and goes away", run: (window) => fails(window, base) },
    { name: "an unknown view leads home", run: unknownView },
    ...(token === null ? [] : [{ name: "signing out hides everything", at: guarded, alone: "last", run: signsOut }]),
  ];
}

/** Follows links of numbers, each of which must lead to as many events or groups. */
async function follow({ go, page, settled }, view, selectors) {
  await go(view);
  let followed = 0;
  for (const [selector, most] of selectors) {
    const link = page.locator(selector);
    await link.first().waitFor();
    const found = await link.evaluateAll((all) => all.map((each) => [each.getAttribute("href"), each.innerText]));
    const numbers = found.filter(([href, text]) => /^[\d,]+$/.test(text.trim()) && /^#\/(events|groups)/.test(href)).slice(0, most);
    assert.ok(numbers.length > 0, `a number at ${selector}`);
    for (const [href, text] of numbers) {
      await go(href.replace(/^#\//, ""));
      await settled();
      assert.equal(number(await page.locator(".summary").first().innerText()), number(text), `${selector}: ${href}`);
      followed += 1;
    }
    await go(view);
    await link.first().waitFor();
  }
  return followed;
}

async function numbersLead(window) {
  const { go, page, base } = window;
  const range = past();
  const overview = await follow(window, `?${range}`, [
    [".pair .big-note a.num", 3], [".panel-wide .legend a.num", 2], [".panel-wide .panel-actions a.num", 2], [".bars a.num", 2], [".masonry .panel:nth-child(3) .bars a.num", 2],
  ]);
  const services = await follow(window, `services?${range}`, [["table.data tbody a.num", 3]]);
  await page.locator("table.data tbody .cell-main a").first().click();
  await page.waitForURL(/service=/);
  const service = `services?${new URL(page.url()).hash.split("?")[1]}`;
  const one = await follow(window, service, [[".stats a.num", 3], [".panel-wide .legend a.num", 1], ["table.data tbody a.num", 2]]);
  // The number at the top is the one that SQL gives.
  await go(`?${range}`);
  const [from, to] = [params(page).get("from"), params(page).get("to")];
  const query = `SELECT CAST(sum(coalesce(represents, 1)) AS bigint) AS n FROM errors WHERE time >= '${from}' AND time < '${to}'`;
  const response = await page.request.post(`${base}/api/v1/sql`, { data: { query } });
  assert.equal(number(await page.locator(".panel-hidden .big-note a.num").first().innerText()), (await response.json()).rows[0].n);
  return `${overview + services + one} numbers`;
}

async function everyNumber({ go, page, settled }) {
  const range = past(72);
  const hrefs = new Set();
  for (const view of ["", "groups", "services", "trust", "codes"]) {
    await go(`${view}?${range}`);
    const found = await page.locator("main a.num").evaluateAll((links) => links.map((link) => link.getAttribute("href")));
    // Some of the first and some of the last: a view has several kinds of numbers.
    for (const href of [...found.slice(0, 2), ...found.slice(-2)]) hrefs.add(href);
  }
  for (const href of hrefs) {
    await go(href.replace(/^#\//, ""));
    await settled();
    if (href.startsWith("#/sql")) {
      await page.locator("table.rows tbody tr").first().waitFor();
      continue;
    }
    if (href.startsWith("#/groups/")) continue;
    await page.locator("main .summary").first().waitFor();
    assert.ok(number(await page.locator("main .summary").first().innerText()) > 0, href);
  }
  return `${hrefs.size} links`;
}

async function groupNumbers({ go, page, settled }) {
  const range = past();
  await go(`groups?${range}`);
  const row = page.locator("table.data tbody tr").first();
  const shown = number(await row.locator("a.num").first().innerText());
  await row.locator("a").first().click();
  await page.waitForURL(/#\/groups\//);
  await settled();
  const onPage = page.locator(".facts-row a.num").first();
  assert.equal(number(await onPage.innerText()), shown);
  await onPage.click();
  await page.waitForURL(/#\/events/);
  await settled();
  assert.equal(number(await page.locator(".summary").first().innerText()), shown);
}

async function zooms({ go, page, settled }) {
  await go("?from=-24h&to=now");
  const before = await page.locator(".panel-wide .panel-actions a.num").first().innerText();
  const area = page.locator(".panel-wide .u-over").first();
  await area.scrollIntoViewIfNeeded();
  const box = await area.boundingBox();
  await page.mouse.move(box.x + box.width * 0.4, box.y + box.height / 2);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width * 0.5, box.y + box.height / 2, { steps: 6 });
  await page.mouse.move(box.x + box.width * 0.6, box.y + box.height / 2, { steps: 6 });
  await page.mouse.up();
  await page.waitForFunction(() => /from=\d{4}/.test(location.hash));
  await settled();
  const chosen = params(page);
  const hours = (Date.parse(chosen.get("to")) - Date.parse(chosen.get("from"))) / 3600e3;
  assert.ok(hours > 3 && hours < 7, `a fifth of a day is about ${hours} hours`);
  const after = await page.locator(".panel-wide .panel-actions a.num").first().innerText();
  assert.ok(number(after) < number(before), `${after} is less than ${before}`);
  await page.goBack();
  await page.waitForFunction(() => location.hash.includes("from=-24h"));
  await settled();
  return `${before} to ${after}`;
}

async function clicksBar({ go, page, settled }) {
  await go("?from=-24h&to=now");
  const area = page.locator(".panel-wide .u-over").first();
  await area.scrollIntoViewIfNeeded();
  const box = await area.boundingBox();
  await page.mouse.click(box.x + box.width * 0.5, box.y + box.height - 8);
  await page.waitForURL(/#\/events/);
  await settled();
  const chosen = params(page);
  const minutes = (Date.parse(chosen.get("to")) - Date.parse(chosen.get("from"))) / 60e3;
  assert.ok(minutes > 0 && minutes <= 60, `a bar is ${minutes} minutes`);
}

async function filtersNarrow({ go, page, settled }) {
  await go(`events?kind=error&${past()}`);
  const all = number(await page.locator(".summary").innerText());
  await page.getByLabel("Category").selectOption("VALIDATION");
  await page.waitForURL(/category=VALIDATION/);
  await settled();
  await page.waitForFunction((before) => document.querySelector(".summary")?.textContent.includes(before) === false, `${all.toLocaleString("en-US")} event`);
  const one = number(await page.locator(".summary").innerText());
  assert.ok(one > 0 && one < all, `${one} of ${all}`);
  const badges = await page.locator("table.data tbody .badge").allInnerTexts();
  assert.deepEqual([...new Set(badges.map((text) => text.trim()))], ["Validation"]);
  await page.getByLabel("Hidden failures").selectOption("true");
  await page.waitForURL(/hidden=true/);
  await settled();
  const rows = await page.locator("table.data tbody tr").count();
  assert.equal(await page.locator("table.data tbody tr[data-hidden=true]").count(), rows);
  await page.locator(".facet").first().click();
  await page.waitForURL(/service=/);
  await settled();
  return `${all}, then ${one}, then ${rows} shown`;
}

async function groupSearch({ go, page, settled }) {
  await go(`groups?${past()}`);
  const all = number(await page.locator(".summary").innerText());
  const template = await page.locator("table.data tbody a").first().innerText();
  const word = /[A-Za-z]{5,}/.exec(template)?.[0] ?? template.slice(0, 5);
  await page.getByLabel("Search messages and templates").fill(word);
  await page.waitForURL(new RegExp(`q=${word}`));
  await page.waitForTimeout(300);
  await settled();
  const found = number(await page.locator(".summary").innerText());
  assert.ok(found > 0 && found <= all, `${found} of ${all}`);
  await page.getByLabel("Search messages and templates").fill("no group has this text");
  await page.getByText("No group matches").waitFor();
}

async function olderEvents({ go, page }) {
  await go(`events?${past(72)}`);
  const rows = page.locator("table.data tbody tr");
  const first = await rows.count();
  const links = () => page.locator("table.data tbody td:first-child a").evaluateAll((all) => all.map((link) => link.getAttribute("href")));
  await page.getByRole("button", { name: "Older events" }).click();
  await page.waitForFunction((count) => document.querySelectorAll("table.data tbody tr").length > count, first);
  const all = await links();
  assert.equal(new Set(all).size, all.length, "no event is shown twice");
  const times = await page.locator("table.data tbody time").evaluateAll((found) => found.map((time) => time.dateTime));
  assert.deepEqual(times, [...times].sort().reverse(), "the newest come first");
}

async function reloadKeeps({ go, page, settled }) {
  await go(`events?kind=error&hidden=true&category=VALIDATION&${past()}`);
  const [url, summary] = [page.url(), await page.locator(".summary").innerText()];
  const facet = await page.getByLabel("Category").inputValue();
  await page.reload();
  await settled();
  assert.equal(page.url(), url);
  assert.equal(await page.locator(".summary").innerText(), summary);
  assert.equal(await page.getByLabel("Category").inputValue(), facet);
}

async function ranges({ go, page, settled }) {
  await go("groups");
  await page.locator(".menu summary").click();
  await page.getByRole("button", { name: "Last 6 hours" }).click();
  await page.waitForURL(/from=-6h/);
  await page.getByRole("button", { name: "Earlier" }).click();
  await page.waitForURL(/from=20/);
  await settled();
  await page.getByRole("button", { name: "Later" }).click();
  await page.locator(".menu summary").click();
  await page.getByLabel("From").fill("2026-01-05T10:00");
  await page.getByLabel("To", { exact: true }).fill("2026-01-05T12:00");
  await page.getByRole("button", { name: "Show this range" }).click();
  await page.waitForURL(/from=2026-01-05/);
  const hours = (Date.parse(params(page).get("to")) - Date.parse(params(page).get("from"))) / 3600e3;
  assert.equal(hours, 2);
  await page.getByRole("button", { name: "Zoom out" }).click();
  await page.waitForFunction(() => !location.hash.includes("to=2026-01-05T12"));
}

const STATEMENT = "SELECT time_bucket('1 hour', time) AS since, category, count(*) AS errors FROM errors WHERE time >= now() - INTERVAL '1 day' GROUP BY since, category ORDER BY since";

async function sql({ go, page }) {
  await go("sql");
  const editor = page.locator(".editor .cm-content");
  await editor.click();
  await page.keyboard.insertText(STATEMENT);
  await page.keyboard.press("Control+Enter");
  await page.locator("table.rows tbody tr").first().waitFor();
  assert.equal(params(page).get("sql"), STATEMENT);
  await page.getByRole("link", { name: "Chart" }).click();
  await page.locator("section canvas").waitFor();
  const [download] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "Download as CSV" }).click()]);
  assert.equal(download.suggestedFilename(), "faultline.csv");
  await editor.click();
  await page.keyboard.press("Control+A");
  await page.keyboard.insertText("DELETE FROM events");
  page.expectedErrors = ["status of 4"];
  await page.getByRole("button", { name: "Run" }).click();
  await page.locator(".failed-title").waitFor();
  assert.ok((await page.locator(".failed-title").innerText()).length > 5);
}

async function completes({ go, page }) {
  await go("sql");
  await page.locator(".editor .cm-content").click();
  await page.waitForFunction(() => document.querySelector(".sql-side .columns, .sql-side .table-names") !== null);
  await page.keyboard.type("SELECT finger", { delay: 30 });
  await page.locator(".cm-tooltip-autocomplete li", { hasText: "fingerprint" }).first().waitFor();
  await page.keyboard.press("Escape");
  await page.keyboard.type("print FROM erro", { delay: 30 });
  await page.locator(".cm-tooltip-autocomplete li", { hasText: "errors" }).first().waitFor();
}

async function cookbook({ go, page }) {
  await go("sql");
  const recipe = page.locator(".sql-side li a").first();
  await recipe.click();
  await page.locator("table.rows tbody tr").first().waitFor();
  assert.ok(params(page).get("sql").length > 20);
  assert.equal((await page.locator(".editor .cm-line").first().innerText()).trim(), params(page).get("sql").split("\n")[0].trim());
}

/** The longest time until an event comes in: a quiet demo has one in twenty seconds on average. */
const EVENT_MS = 240_000;

async function live({ go, page }) {
  await go("live");
  await page.locator("table.data tbody tr").first().waitFor();
  const seen = async () => number(await page.locator(".summary").innerText());
  const before = await seen();
  await page.waitForFunction((count) => Number(/([\d,]+) event/.exec(document.querySelector(".summary").textContent)[1].replaceAll(",", "")) > count, before, { timeout: EVENT_MS });
  await page.getByLabel("Hidden failures").selectOption("true");
  await page.waitForURL(/hidden=true/);
  await page.locator("table.data tbody tr").first().waitFor();
  const rows = await page.locator("table.data tbody tr").count();
  assert.equal(await page.locator("table.data tbody tr .hidden-mark").count(), rows);
  await page.getByRole("button", { name: "Pause" }).click();
  await page.getByRole("button", { name: "Go on" }).click();
  page.expectedErrors = ["status of 4"];
  await page.getByLabel("Condition in SQL").fill("nonsense; DROP");
  await page.keyboard.press("Enter");
  await page.locator(".failed-title").waitFor();
}

async function codes({ go, page }) {
  await go("codes");
  const all = await page.locator("table.data tbody tr").count();
  await page.getByLabel("Search codes").fill("-32602");
  await page.waitForURL(/q=-32602/);
  await page.waitForFunction((count) => document.querySelectorAll("table.data tbody tr").length < count, all);
  const found = await page.locator("table.data tbody tr").count();
  assert.ok(found > 0 && found < all, `${found} of ${all}`);
}

/** Presses Tab until something has the focus. */
async function tabTo(page, is, what) {
  for (let presses = 0; presses < 60; presses += 1) {
    await page.keyboard.press("Tab");
    if (await page.evaluate(is)) return;
  }
  assert.fail(`Tab does not reach ${what}`);
}

async function keyboard({ go, page, settled }) {
  await go("");
  await page.keyboard.press("Tab");
  assert.equal(await page.evaluate(() => document.activeElement.className), "skip");
  await page.keyboard.press("Enter");
  assert.equal(await page.evaluate(() => document.activeElement.id), "main");
  await page.reload();
  await settled();
  await tabTo(page, () => document.activeElement.textContent === "Groups", "the view Groups");
  const outline = await page.evaluate(() => getComputedStyle(document.activeElement).outlineStyle);
  assert.notEqual(outline, "none", "the focus is seen");
  await page.keyboard.press("Enter");
  await page.waitForURL(/#\/groups/);
  await settled();
  assert.equal(await page.evaluate(() => document.activeElement.id), "main", "the focus is in the new view");
  await tabTo(page, () => document.activeElement.matches("table.data tbody a"), "the first group");
  await page.keyboard.press("Enter");
  await page.waitForURL(/#\/groups\/./);
  await settled();
  await page.locator("body").press("Home");
  await page.reload();
  await settled();
  await tabTo(page, () => document.activeElement.matches(".menu summary"), "the range");
  await page.keyboard.press("Enter");
  await tabTo(page, () => document.activeElement.textContent === "Last 7 days", "a preset");
  await page.keyboard.press("Enter");
  await page.waitForURL(/from=-7d/);
  await page.locator(".menu summary").focus();
  await page.keyboard.press("Enter");
  await page.keyboard.press("Escape");
  assert.equal(await page.evaluate(() => document.querySelector(".menu").open), false, "Escape closes the menu");
}

async function keyboardZoom({ go, page, settled }) {
  await go("?from=-24h&to=now");
  const summary = page.locator(".panel-wide .chart-table summary").first();
  await summary.focus();
  await page.keyboard.press("Enter");
  await page.locator(".panel-wide .chart-table tbody tr").first().waitFor();
  await tabTo(page, () => document.activeElement.textContent === "zoom", "a zoom link");
  await page.keyboard.press("Enter");
  await page.waitForURL(/from=20/);
  await settled();
}

/** A finger that moves sideways over a chart zooms, one that moves down scrolls. */
async function touchZoom({ go, page, settled }) {
  await go("?from=-24h&to=now");
  const area = page.locator(".panel-wide .u-over").first();
  await area.scrollIntoViewIfNeeded();
  const box = await area.boundingBox();
  const debug = await page.context().newCDPSession(page);
  const touch = (type, share) => debug.send("Input.dispatchTouchEvent", {
    type, touchPoints: share === null ? [] : [{ x: box.x + box.width * share, y: box.y + box.height / 2 }],
  });
  await touch("touchStart", 0.3);
  for (const share of [0.35, 0.45, 0.6]) await touch("touchMove", share);
  await touch("touchEnd", null);
  await page.waitForFunction(() => /from=\d{4}/.test(location.hash));
  await settled();
  const hours = (Date.parse(params(page).get("to")) - Date.parse(params(page).get("from"))) / 3600e3;
  assert.ok(hours > 4 && hours < 11, `a third of a day is about ${hours} hours`);
}

async function refreshes({ go, page }) {
  await go("?refresh=5");
  await page.waitForRequest((request) => request.url().includes("/api/v1/overview"), { timeout: 12_000 });
}

async function empty({ go, page }) {
  const range = "from=2001-01-01T00:00:00Z&to=2001-01-02T00:00:00Z";
  for (const [view, text] of [["", "Nothing arrived in this time"], ["groups", "No group matches"], ["events", "No event matches"], ["services", "No service was active"]]) {
    await go(`${view}?${range}`);
    await page.getByText(text).first().waitFor();
  }
}

async function fails({ go, page, shot }, base) {
  page.expectedErrors = ["503"];
  await page.route(`${base}/api/v1/overview*`, (route) => route.fulfill({
    status: 503, contentType: "application/json", body: JSON.stringify({ error: { code: "busy", message: "All places are taken.", remedy: "Try again in a moment." } }),
  }));
  await go("");
  await page.getByText("All places are taken.").waitFor();
  await page.getByText("Try again in a moment.").waitFor();
  await shot("error");
  await page.unroute(`${base}/api/v1/overview*`);
  await page.getByRole("button", { name: "Try again" }).click();
  await page.locator(".pair canvas").first().waitFor();
}

async function unknownView({ go, page }) {
  await go("nowhere/at/all");
  await page.getByRole("link", { name: "Go to the overview" }).click();
  await page.locator(".pair").waitFor();
}

async function signsOut({ page, go, base }) {
  await go("");
  page.expectedErrors = ["401", "500", "400"];
  // As long as the server has not ended the session, the page does not say that it has.
  await page.route(`${base}/api/v1/session`, (route) => route.request().method() === "DELETE" ? route.fulfill({ status: 500, body: "" }) : route.continue());
  await page.getByRole("button", { name: "Sign out" }).click();
  await page.getByText("You are still signed in").waitFor();
  await page.unroute(`${base}/api/v1/session`);
  await page.getByRole("button", { name: "Sign out" }).click();
  await page.getByLabel("Token").waitFor();
  await page.reload();
  await page.getByLabel("Token").fill("not the token");
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("alert").waitFor();
}
