// Looks at the page in a real browser, against any server that fulfils the contract of src/api.ts: `faultline demo`, or
// the development server.
//
//   node tests/page.mjs --base http://127.0.0.1:7070 [--shots DIR] [--chromium PATH] [--only WORD] [--token TOKEN] [--timeout SECONDS]
//                      [--first-chart MILLISECONDS]
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
const shots = option("shots", null);
const only = option("only", "");
const token = option("token", null);
// How long anything may take; a debug build on a busy machine wants more.
const seconds = Number(option("timeout", "20"));
const host = new URL(base).host;

/** A browser window that writes down everything that must not happen. */
async function open(browser, settings) {
  const context = await browser.newContext({ viewport: { width: 1360, height: 900 }, colorScheme: "light", acceptDownloads: true, ...settings });
  const wrongs = [];
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
  const shot = async (name) => {
    if (shots !== null) await page.screenshot({ path: path.join(shots, `${name}.png`) });
  };
  if (token !== null) await signIn(page);
  return { page, context, wrongs, go, shot, settled: () => settled(page), close: () => context.close() };
}

async function signIn(page) {
  await page.goto(`${base}/`);
  await page.getByLabel("Token").fill(token);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.locator("nav").first().waitFor();
  // Checks begin with a page that is loaded anew.
  await page.goto("about:blank");
}

/** Nothing is being fetched any more, and something is there. */
async function settled(page) {
  await page.locator("main h1").first().waitFor();
  await page.waitForFunction(() => document.querySelector(".loading, [data-loading=true]") === null);
  const failed = page.locator(".failed");
  if (page.expectedErrors === undefined && await failed.count() > 0) throw new Error(`the page shows an error: ${await failed.first().innerText()}`);
}

const browser = await chromium.launch({ executablePath: option("chromium", "/usr/bin/chromium"), args: ["--no-sandbox"] });
if (shots !== null) await mkdir(shots, { recursive: true });
let failed = 0;
let ran = 0;
for (const { name, settings = {}, run } of checks({ base, token, firstChart: Number(option("first-chart", "10000")) })) {
  if (!name.includes(only)) continue;
  ran += 1;
  const began = performance.now();
  let window = null;
  try {
    window = await open(browser, settings);
    const said = await run(window);
    if (window.wrongs.length > 0) throw new Error([...new Set(window.wrongs)].join("\n"));
    console.log(`ok    ${name} (${Math.round(performance.now() - began)} ms)${said ? `: ${said}` : ""}`);
  } catch (error) {
    failed += 1;
    const also = window === null ? [] : [...new Set(window.wrongs)];
    console.error(`FAIL  ${name}\n${[error.stack ?? error, ...also].join("\n").replace(/^/gm, "      ")}`);
    await window?.shot(`failed-${ran}`);
  } finally {
    await window?.close();
  }
}
await browser.close();
console.log(`${ran - failed} of ${ran} checks hold`);
process.exit(failed > 0 || ran === 0 ? 1 : 0);
