import { expect, test } from "vitest";
import { type SseEvent, SseParser } from "../../../src/client/sse-parser.ts";

const text =
  ': comment\n\nid: 1\ndata: {"a":1}\n\nretry: 50\nid: 2\r\nevent: named\r\ndata: x\r\ndata:y\r\n\r\nid: 3\n\ndata: é🌊\n\n';
const events: SseEvent[] = [
  { id: "1", event: "message", data: '{"a":1}' },
  { id: "2", event: "named", data: "x\ny" },
  { id: "3", event: "message", data: "é🌊" },
];

test("events are the same wherever the text is cut", () => {
  for (let first = 0; first <= text.length; first++) {
    for (let second = first; second <= text.length; second += 3) {
      const parser = new SseParser();
      const pieces = [text.slice(0, first), text.slice(first, second), text.slice(second)];
      expect(pieces.flatMap((piece) => parser.push(piece))).toEqual(events);
      expect(parser.retryMs).toBe(50);
    }
  }
});

test("an event that was cut never was, and its id does not count", () => {
  const parser = new SseParser("7");
  expect(parser.push("id: 8\ndata: half")).toEqual([]);
  expect(new SseParser("7").push("data: x\n\n")).toEqual([
    { id: "7", event: "message", data: "x" },
  ]);
});

test("a line of many pieces is read as a whole, and not again at each", () => {
  const parser = new SseParser();
  const pieces = 20_000;
  expect(parser.push("data: ")).toEqual([]);
  for (let piece = 0; piece < pieces; piece++) expect(parser.push("ä".repeat(500))).toEqual([]);
  expect(parser.push("\r")).toEqual([]);
  expect(parser.push("\n")).toEqual([]);
  expect(parser.push("\n")[0]?.data).toHaveLength(500 * pieces);
});
