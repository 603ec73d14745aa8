import { expect, test } from "vitest";
import { mcpResultToText } from "../../../src/mcp/mcp-content.ts";

const text = (value: string) => ({ type: "text", text: value });

test.each([
  [{ content: [text("a"), text("b")] }, "a\nb"],
  [{ content: [] }, ""],
  [{ content: [], structuredContent: { n: 1 } }, '{"n":1}'],
  [{ content: [text("n is 1")], structuredContent: { n: 1 } }, "n is 1"],
  [
    { content: [{ type: "audio", mimeType: "audio/wav", data: "AAAAAAAA" }] },
    "[audio not shown: audio/wav, 6 bytes]",
  ],
  [
    { content: [{ type: "resource_link", uri: "file:///a", name: "A" }] },
    "[resource: file:///a (A)]",
  ],
  [
    { content: [{ type: "resource", resource: { uri: "file:///a", text: "body" } }] },
    "[resource: file:///a]\nbody",
  ],
  [
    { content: [{ type: "resource", resource: { uri: "file:///a", blob: "AAAA" } }] },
    "[resource not shown: file:///a, 3 bytes]",
  ],
  [{ content: [{ type: "hologram" }] }, "[hologram not shown]"],
  [{}, ""],
])("%j", (result, content) => {
  expect(mcpResultToText(result)).toEqual({ content, isError: false });
});

test("an error stays an error", () => {
  expect(mcpResultToText({ content: [text("no")], isError: true })).toEqual({
    content: "no",
    isError: true,
  });
});
