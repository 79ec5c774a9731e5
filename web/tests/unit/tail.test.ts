import assert from "node:assert/strict";
import { test } from "node:test";
import { tailQuery } from "../../src/core/tail";
import { confirmations } from "../../src/core/statements";

const NOTHING = { services: [], environments: [], categories: [], codes: [], hidden: null, where: null };

test("several environments are alternatives, and none named means none", () => {
  const where = (environments: string[]) => tailQuery({ ...NOTHING, environments }, 5).where;
  assert.equal(where([]), null);
  assert.equal(where(["a"]), "environment IN ('a')");
  assert.equal(where(["a", "b'"]), "environment IN ('a', 'b''')");
  assert.equal(where([""]), "environment IS NULL");
  assert.equal(where(["a", ""]), "(environment IN ('a') OR environment IS NULL)");
});

test("services without a name become a condition", () => {
  assert.deepEqual(tailQuery({ ...NOTHING, services: ["x"] }, 5).service, ["x"]);
  const query = tailQuery({ ...NOTHING, services: ["x", ""], hidden: "true", where: "1 = 1 -- no" }, 5);
  assert.deepEqual(query.service, []);
  assert.equal(query.where, "(hidden\n) AND ((service IN ('x') OR service IS NULL)\n) AND (1 = 1 -- no\n)");
});

test("the statement of a confirmation quotes what others chose", () => {
  const sql = confirmations({ from: "a", to: "b" }, { service: ["it's"], client: [] }, "used_at IS NOT NULL");
  assert.match(sql, /service IN \('it''s'\)\n {2}AND used_at IS NOT NULL/);
});
