// Takes the pictures of the README from a running `faultline demo`: docs/images/overview-{light,dark}.png.
//
//   node tests/pictures.mjs [--base http://127.0.0.1:7070] [--out ../docs/images] [--chromium PATH]

import path from "node:path";
import { chromium } from "playwright-core";

function option(name, fallback) {
  const place = process.argv.indexOf(`--${name}`);
  return place < 0 ? fallback : process.argv[place + 1];
}

const base = option("base", "http://127.0.0.1:7070").replace(/\/$/, "");
const out = option("out", path.resolve(import.meta.dirname, "../../docs/images"));
const browser = await chromium.launch({ executablePath: option("chromium", "/usr/bin/chromium"), args: ["--no-sandbox", "--disable-gpu"] });
for (const colorScheme of ["light", "dark"]) {
  const context = await browser.newContext({ viewport: { width: 1360, height: 900 }, colorScheme });
  const page = await context.newPage();
  page.setDefaultTimeout(120_000);
  await page.goto(`${base}/#/`);
  await page.locator(".panel-wide canvas").first().waitFor();
  await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
  await page.screenshot({ path: path.join(out, `overview-${colorScheme}.png`) });
  await context.close();
}
await browser.close();
