// What must hold of the page. Each check gets a window of its own; it throws when something does not hold.

import assert from "node:assert/strict";
import { counted } from "./counted.mjs";
import { hostiles } from "./hostiles.mjs";
import { looks } from "./looks.mjs";
import { uses } from "./uses.mjs";

/** All checks, in order. */
export function checks(about) {
  return [...looks(about), ...uses(about), ...(about.hostile === null ? [] : [...hostiles(about), ...counted(about)])];
}

/** A number as the page writes it. */
export function number(text) {
  const found = /[\d,]+/.exec(text);
  assert.ok(found, `a number in "${text}"`);
  return Number(found[0].replaceAll(",", ""));
}

/** The parameters of the present address. */
export function params(page) {
  const hash = new URL(page.url()).hash;
  return new URLSearchParams(hash.includes("?") ? hash.slice(hash.indexOf("?") + 1) : "");
}

/** A range that has ended, so that its numbers do not change while they are compared. */
export function past(hours = 24) {
  const to = Math.floor(Date.now() / 60e3) * 60e3 - 120e3;
  const iso = (time) => new Date(time).toISOString().replace(".000Z", "Z");
  return `from=${iso(to - hours * 3600e3)}&to=${iso(to)}`;
}
