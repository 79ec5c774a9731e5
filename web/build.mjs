// Builds the page into dist/. The same sources give the same bytes, under names that never change.
//
//   node build.mjs           writes dist/
//   node build.mjs --check   fails when dist/ is not what the sources give

import { build } from "esbuild";
import { readFile, mkdir, readdir, rm, writeFile } from "node:fs/promises";
import { gzipSync } from "node:zlib";
import { fileURLToPath } from "node:url";
import path from "node:path";

const root = path.dirname(fileURLToPath(import.meta.url));
const dist = path.join(root, "dist");

// Two bundles that share nothing: the page, and the SQL editor, which is loaded when it is first shown.
const entries = [
  { in: "src/main.tsx", out: "app" },
  { in: "src/editor/editor.ts", out: "editor" },
];

const copied = ["index.html", "icon.svg"];

/** Every file of dist/, by name. */
export async function bundle() {
  const files = new Map();
  const packages = new Set();
  for (const entry of entries) {
    const result = await build({
      absWorkingDir: root,
      entryPoints: [entry],
      outdir: dist,
      bundle: true,
      format: "esm",
      target: ["es2022"],
      minify: true,
      jsx: "automatic",
      jsxImportSource: "preact",
      external: ["./editor.js"],
      legalComments: "none",
      define: { "process.env.NODE_ENV": '"production"' },
      write: false,
      metafile: true,
      logLevel: "warning",
    });
    for (const input of Object.keys(result.metafile.inputs)) {
      const found = /node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(input);
      if (found) packages.add(found[1]);
    }
    for (const file of result.outputFiles) files.set(path.basename(file.path), Buffer.from(file.contents));
  }
  for (const name of copied) files.set(name, await readFile(path.join(root, "public", name)));
  files.set("licenses.txt", await licenses([...packages].sort()));
  return files;
}

/** The licences of what is bundled, which ask to be passed on with it. */
async function licenses(packages) {
  const texts = await Promise.all(packages.map(async (name) => {
    const folder = path.join(root, "node_modules", name);
    const { version } = JSON.parse(await readFile(path.join(folder, "package.json"), "utf8"));
    const file = (await readdir(folder)).find((each) => /^licen[cs]e/i.test(each));
    if (file === undefined) throw new Error(`${name} has no licence`);
    return `${name} ${version}\n\n${(await readFile(path.join(folder, file), "utf8")).trim()}\n`;
  }));
  return Buffer.from(texts.join(`\n${"-".repeat(80)}\n\n`));
}

async function write(files) {
  await rm(dist, { recursive: true, force: true });
  await mkdir(dist, { recursive: true });
  let total = 0;
  for (const [name, bytes] of files) {
    await writeFile(path.join(dist, name), bytes);
    const packed = gzipSync(bytes, { level: 9 }).length;
    total += packed;
    console.log(`${name.padEnd(12)} ${String(bytes.length).padStart(8)} bytes, ${String(packed).padStart(7)} gzipped`);
  }
  console.log(`${"total".padEnd(12)} ${"".padStart(14)} ${String(total).padStart(7)} gzipped`);
}

async function check(files) {
  const there = new Set(await readdir(dist).catch(() => []));
  const stale = [];
  for (const [name, bytes] of files) {
    const found = there.delete(name) ? await readFile(path.join(dist, name)) : null;
    if (!found?.equals(bytes)) stale.push(name);
  }
  stale.push(...there);
  if (stale.length > 0) {
    console.error(`web/dist is stale (${stale.join(", ")}): run "npm ci && npm run build" in web/ and commit it.`);
    process.exit(1);
  }
  console.log("web/dist is what the sources give");
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const files = await bundle();
  await (process.argv.includes("--check") ? check(files) : write(files));
}
