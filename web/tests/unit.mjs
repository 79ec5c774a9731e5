// Runs the tests of the pure parts: bundles them, because Node 20 reads no TypeScript, and hands them to its test runner.

import { build } from "esbuild";
import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";

const folder = path.join(path.dirname(fileURLToPath(import.meta.url)), "unit");
const out = mkdtempSync(path.join(tmpdir(), "faultline-web-"));
const names = readdirSync(folder).filter((name) => name.endsWith(".test.ts"));
try {
  await build({
    entryPoints: names.map((name) => path.join(folder, name)),
    outdir: out, bundle: true, platform: "node", format: "esm", outExtension: { ".js": ".mjs" }, logLevel: "warning",
    jsx: "automatic", jsxImportSource: "preact",
  });
  const files = names.map((name) => path.join(out, name.replace(/\.ts$/, ".mjs")));
  const { status } = spawnSync(process.execPath, ["--test", "--test-reporter=spec", ...files], { stdio: "inherit", env: { ...process.env, TZ: "UTC" } });
  process.exitCode = status ?? 1;
} finally {
  rmSync(out, { recursive: true, force: true });
}
