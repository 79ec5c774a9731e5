import assert from "node:assert/strict";
import { test } from "node:test";
import { changed, filtersOf, formatRoute, linkFrom, parseRoute, searchParams } from "../../src/core/url";

const HERE = parseRoute("#/events?from=-7d&to=now&service=orders&service=ledger&category=TOKEN&q=a%20b");

test("a route is read as it is written", () => {
  const route = parseRoute("#/groups/a%2Fb?from=-1h&q=x%26y");
  assert.deepEqual(route.path, ["groups", "a/b"]);
  assert.equal(route.params.get("q"), "x&y");
  assert.equal(formatRoute(route.path, route.params), "#/groups/a%2Fb?from=-1h&q=x%26y");
  assert.deepEqual(parseRoute("").path, []);
  assert.deepEqual(parseRoute("#/codes/%E0%A4%A").path, ["codes", "%E0%A4%A"]);
});

test("another view keeps the range and the services, and nothing else", () => {
  assert.equal(linkFrom(HERE, ["groups"]), "#/groups?from=-7d&to=now&service=orders&service=ledger");
  assert.equal(linkFrom(HERE, ["events"], { kind: "error", service: "geo" }), "#/events?from=-7d&to=now&kind=error&service=geo");
  assert.equal(linkFrom(HERE, [], { from: null, to: null, service: null }), "#/");
});

test("the same view with changes keeps everything else", () => {
  assert.equal(changed(HERE, { category: null, service: "geo" }), "#/events?from=-7d&to=now&q=a+b&service=geo");
  assert.equal(changed(parseRoute("#/"), { service: "" }), "#/?service=");
});

test("an empty value is a value: it means that there is none", () => {
  assert.equal(searchParams({ client: "", service: ["a", ""], q: null }).toString(), "client=&service=a&service=");
  assert.deepEqual(filtersOf(parseRoute("#/events?client=&x=1"), ["client", "service"]), { client: [""] });
});
