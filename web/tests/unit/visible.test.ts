import assert from "node:assert/strict";
import { test } from "node:test";
import { visible } from "../../src/core/visible";

test("what cannot be seen is shown", () => {
  assert.equal(visible("\u001b[31mred\u0007"), "⟨U+001B⟩[31mred⟨U+0007⟩");
  assert.equal(visible("\u202egnp.exe"), "⟨U+202E⟩gnp.exe");
  assert.equal(visible("a\u007f\u0085\u200bb"), "a⟨U+007F⟩⟨U+0085⟩⟨U+200B⟩b");
});

test("white space, letters of all languages and emoji stay", () => {
  for (const text of ["a\tb\nc d", "Žluťoučký kůň", "שלום", "مرحبا", "日本語", "👩‍💻", "a\u00a0b"]) assert.equal(visible(text), text);
});
