import assert from "node:assert/strict";
import { test } from "node:test";
import { SseParser } from "../../src/core/sse";

const STREAM = ': following\nretry: 1000\nid: 17\n\nid: 18.0\ndata: {"a":1}\n\nevent: gap\nid: 19\ndata: one\ndata: two\n\n: nothing new\nid: 20\n\ndata: cut';

test("messages are the same however the stream is cut", () => {
  const whole = new SseParser();
  const messages = whole.push(STREAM);
  assert.deepEqual(messages, [
    { event: "message", data: '{"a":1}', id: "18.0" },
    { event: "gap", data: "one\ntwo", id: "19" },
  ]);
  assert.equal(whole.id, "20");
  for (let size = 1; size < STREAM.length; size += 1) {
    const parser = new SseParser();
    const found = [];
    for (let place = 0; place < STREAM.length; place += size) found.push(...parser.push(STREAM.slice(place, place + size)));
    assert.deepEqual(found, messages, `in pieces of ${size}`);
    assert.equal(parser.id, "20");
  }
});

test("lines may end in any way", () => {
  const parser = new SseParser();
  assert.deepEqual(parser.push("data: a\r\n\r\ndata: b\r\rdata: c\n\n").map(({ data }) => data), ["a", "b", "c"]);
});

test("a message without an end is given up", () => {
  const parser = new SseParser();
  assert.throws(() => {
    for (let piece = 0; piece < 10; piece += 1) parser.push("x".repeat(1024 * 1024));
  }, /too long/);
});
