// Looks at the page in a real browser, against any server that has data, above all `faultline demo`.
//
//   node tests/page.mjs --base http://127.0.0.1:7070 [--shots DIR] [--chromium PATH] [--only WORD] [--token TOKEN]
//                      [--hostile URL] [--timeout SECONDS] [--first-chart MILLISECONDS] [--jobs NUMBER]
//
// --token is for --hostile if that is given, else for --base. --hostile names a second server, in which every field that a
// sender chooses holds script, markup and control characters.
//
// Each check says what it holds. Whatever else happens, a check fails when the console shows an error, when a script throws
// (a violation of the Content-Security-Policy is an error of the console), when a request goes to another host, or when a
// dialog opens, as a script that a sender smuggled in would do.

import { mkdir } from "node:fs/promises";
import path from "node:path";
import { chromium } from "playwright-core";
import { checks } from "./page/checks.mjs";

function option(name, fallback) {
  const place = process.argv.indexOf(`--${name}`);
  return place < 0 ? fallback : process.argv[place + 1];
}

const base = option("base", "http://127.0.0.1:7070").replace(/\/$/, "");
const hostile = option("hostile", null)?.replace(/\/$/, "") ?? null;
const shots = option("shots", null);
const only = option("only", "");
const token = option("token", null);
// How long anything may take; a debug build on a busy machine wants more.
const seconds = Number(option("timeout", "20"));
const jobs = Number(option("jobs", "2"));

/** A browser window that writes down everything that must not happen. */
async function open(browser, base, state, settings) {
  const context = await browser.newContext({
    viewport: { width: 1360, height: 900 }, colorScheme: "light", acceptDownloads: true, ...(state === undefined ? {} : { storageState: state }), ...settings,
  });
  const wrongs = [];
  const { host } = new URL(base);
  const page = await context.newPage();
  page.on("console", (message) => {
    if (message.type() === "error" && !page.expectedErrors?.some((each) => message.text().includes(each))) wrongs.push(`console: ${message.text()}`);
  });
  page.on("pageerror", (error) => wrongs.push(`script: ${error.message}`));
  page.on("dialog", (dialog) => {
    wrongs.push(`a dialog opened: ${dialog.message()}`);
    void dialog.dismiss();
  });
  page.on("request", (request) => {
    const url = new URL(request.url());
    if (!["data:", "blob:"].includes(url.protocol) && url.host !== host) wrongs.push(`a request to ${url.host}`);
  });
  page.setDefaultTimeout(seconds * 1000);
  const go = async (route) => {
    await page.goto(`${base}/#/${route}`);
    await settled(page);
  };
  const shot = async (name, fullPage = false) => {
    if (shots !== null) await page.screenshot({ path: path.join(shots, `${name}.png`), fullPage });
  };
  return { base, page, context, wrongs, go, shot, settled: () => settled(page), close: () => context.close() };
}

/** Signs in by the form, and returns the cookies that the other windows take over. */
async function signedIn(browser, base) {
  const { page, context, close } = await open(browser, base, undefined, {});
  await page.goto(`${base}/`);
  await page.getByLabel("Token").fill(token);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.locator("nav").first().waitFor();
  const state = await context.storageState();
  await close();
  return state;
}

/** Nothing is being fetched any more, and something is there. */
async function settled(page) {
  await page.locator("main h1").first().waitFor();
  await page.waitForFunction(() => document.querySelector(".loading, [data-loading=true]") === null);
  const failed = page.locator(".failed");
  if (page.expectedErrors === undefined && await failed.count() > 0) throw new Error(`the page shows an error: ${await failed.first().innerText()}`);
}

const FLAGS = [
  "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--disable-background-networking",
  "--disable-component-update", "--disable-sync",
];
const browser = await chromium.launch({ executablePath: option("chromium", "/usr/bin/chromium"), args: FLAGS });
if (shots !== null) await mkdir(shots, { recursive: true });
const guarded = hostile ?? base;
const state = token === null ? undefined : await signedIn(browser, guarded);
const all = checks({ base, hostile, guarded, token, firstChart: Number(option("first-chart", "10000")) });
const wanted = all.filter(({ name }) => name.includes(only));
let [failed, ran] = [0, 0];

async function runOne({ name, at = base, settings = {}, run }) {
  const began = performance.now();
  const place = ran += 1;
  let window = null;
  try {
    window = await open(browser, at, at === guarded ? state : undefined, settings);
    const said = await run(window);
    if (window.wrongs.length > 0) throw new Error([...new Set(window.wrongs)].join("\n"));
    console.log(`ok    ${name} (${Math.round(performance.now() - began)} ms)${said ? `: ${said}` : ""}`);
  } catch (error) {
    failed += 1;
    const also = window === null ? [] : [...new Set(window.wrongs)];
    console.error(`FAIL  ${name}\n${[error.stack ?? error, ...also].join("\n").replace(/^/gm, "      ")}`);
    await window?.shot(`failed-${place}`).catch(() => undefined);
  } finally {
    await window?.close();
  }
}

/** Runs checks beside each other, as many as there are jobs. */
async function runAll(checks) {
  const rest = [...checks];
  const worker = async () => {
    for (let next = rest.shift(); next !== undefined; next = rest.shift()) await runOne(next);
  };
  await Promise.all(Array.from({ length: jobs }, worker));
}

// What times itself is alone, and what ends the session is last.
for (const check of wanted.filter(({ alone }) => alone === "first")) await runOne(check);
await runAll(wanted.filter(({ alone }) => alone === undefined));
for (const check of wanted.filter(({ alone }) => alone === "last")) await runOne(check);
await browser.close();
console.log(`${ran - failed} of ${ran} checks hold`);
process.exit(failed > 0 || ran === 0 ? 1 : 0);
