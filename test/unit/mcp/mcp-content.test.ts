import { expect, test } from "vitest";
import { mcpResultToText, readPathsOf } from "../../../src/mcp/content.ts";

const text = (value: string) => ({ type: "text", text: value });
const picture = { type: "image", mimeType: "image/png", data: "AAAA" };
const forUser = { annotations: { audience: ["user"] } };

test.each([
  [{ content: [text("a"), text("b")] }, "a\nb"],
  [{ content: [] }, ""],
  [{ content: [], structuredContent: { n: 1 } }, '{"n":1}'],
  [{ content: [text("n is 1")], structuredContent: { n: 1 } }, "n is 1"],
  [
    { content: [{ type: "audio", mimeType: "audio/wav", data: "AAAAAAAA" }] },
    "[audio not shown: audio/wav, 6 bytes]",
  ],
  [{ content: [{ type: "hologram" }] }, "[hologram not shown]"],
  [{ content: [text(" ")], structuredContent: { n: 1 } }, '{"n":1}'],
  [
    { content: [{ type: "hologram" }], structuredContent: { n: 1 } },
    '[hologram not shown]\n{"n":1}',
  ],
  [
    { content: [picture], structuredContent: { content: [picture] } },
    "[image not shown: image/png, 3 bytes]",
  ],
  [
    { content: [text("drawn"), { ...text("<svg>"), ...forUser }] },
    "drawn\n[text for the user, not shown]",
  ],
  [
    { content: [{ ...text("<svg>"), ...forUser }, text("drawn")], structuredContent: { n: 1 } },
    "[text for the user, not shown]\ndrawn",
  ],
  [{ content: [{ ...text("all"), ...forUser }] }, "all"],
  [{ content: [{ ...text("both"), annotations: { audience: ["user", "assistant"] } }] }, "both"],
  [{}, ""],
])("%j", (result, content) => {
  expect(mcpResultToText(result)).toEqual({ content, isError: false });
});

test.each([
  [{ type: "resource_link", uri: "file:///a", name: "A" }, "[resource: file:///a (A)]"],
  [
    { type: "resource", resource: { uri: "file:///a", text: "body" } },
    "[resource: file:///a]\nbody",
  ],
  [
    { type: "resource", resource: { uri: "file:///a", blob: "AAAA" } },
    "[resource not shown: file:///a, 3 bytes]",
  ],
])("%j is cited, once", (block, content) => {
  const one = { content, isError: false, citations: ["file:///a"] };
  expect(mcpResultToText({ content: [block] })).toEqual(one);
  expect(mcpResultToText({ content: [block, block] }).citations).toEqual(["file:///a"]);
  expect(mcpResultToText({ content: [block], isError: true }).citations).toBeUndefined();
});

test("a resource for the user alone is cited, and its text is not the model's", () => {
  const resource = { uri: "ui://chart", text: "<html>" };
  const content = [text("drawn"), { type: "resource", ...forUser, resource }];
  expect(mcpResultToText({ content })).toEqual({
    content: "drawn\n[resource ui://chart for the user, not shown]",
    isError: false,
    citations: ["ui://chart"],
  });
});

test("a text that is too long is cut at a character, and says so", () => {
  const result = { content: [text("zwölf ".repeat(100))] };
  const { content } = mcpResultToText(result, { maxBytes: 10 });
  expect(content).toBe("zwölf zw\n[… the result has 700 bytes: only the first 10 are shown …]");
  expect(mcpResultToText(result, { maxBytes: 700 }).content).toBe("zwölf ".repeat(100));
});

test("what a tool was asked to read is cited if it reads", () => {
  const read = { name: "read_files", readOnly: true };
  expect(readPathsOf(read, { paths: ["a", 5, "b"], path: "c" })).toEqual(["c", "a", "b"]);
  expect(readPathsOf({ ...read, readOnly: false }, { path: "c" })).toEqual([]);
  expect(readPathsOf({ ...read, name: "spread_files" }, { path: "c" })).toEqual([]);
});

test("an error stays an error", () => {
  expect(mcpResultToText({ content: [text("no")], isError: true })).toEqual({
    content: "no",
    isError: true,
  });
});
