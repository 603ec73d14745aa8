/** Calls that fail until a person has opened a page (error -32042 with what to open). */

import { setTimeout } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { afterEach, expect, test } from "vitest";
import type { PersonAnswer, PersonQuestion, ToolResult } from "../../../src/tools/types.ts";
import { closeHosts, find, lines, never, start } from "./mcp-host-world.ts";

afterEach(closeHosts);

const path = fileURLToPath(new URL("../../fixtures/mcp/asking.mjs", import.meta.url));
const login = "https://example.com/login";
const terms = "https://example.com/terms";
const asked: PersonQuestion[] = [];

/** @param action null: nobody looks on */
async function call(
  urls: string[],
  action: PersonAnswer["action"] | null,
  { askMs = 0, ...config }: { elicitation?: boolean; timeoutMs?: number; askMs?: number } = {},
): Promise<ToolResult> {
  asked.length = 0;
  const server = { id: "asking", command: process.execPath, args: [path], env: {}, ...config };
  const host = await start([server]);
  const ask = async (question: PersonQuestion): Promise<PersonAnswer> => {
    asked.push(question);
    if (askMs > 0) await setTimeout(askMs);
    return action === "accept" ? { action, content: {} } : { action: action! };
  };
  const context = { ...never, ...(action !== null && { ask }) };
  return await find(host, "needs_pages").call({ urls }, context);
}

test("a person is asked about each page, and the call is made once more", async () => {
  expect(await call([login, terms], "accept")).toEqual({ content: "2", isError: false });
  expect(asked).toEqual([
    { message: "Page 0", url: login },
    { message: "Page 1", url: terms },
  ]);
});

test("a server with little time for a call is not silent while a person is asked", async () => {
  const time = { timeoutMs: 500, askMs: 2500 };
  expect(await call([login], "accept", time)).toEqual({ content: "2", isError: false });
});

test("a server that is never content is not called a third time", async () => {
  const { content, isError } = await call(["https://example.com/never"], "accept");
  expect([isError, content]).toEqual([true, expect.stringContaining("Log in first")]);
  expect(asked).toHaveLength(1);
});

test.each<[name: string, asks: number, ...Parameters<typeof call>]>([
  ["the person declines", 1, [login, terms], "decline"],
  ["nobody looks on", 0, [login], null],
  ["the server may not ask", 0, [login], "accept", { elicitation: false }],
  ["too many pages", 0, Array.from({ length: 9 }, () => login), "accept"],
  ["a page that is none of the web", 0, ["file:///etc/passwd"], "accept"],
])("%s: the call fails", async (name, asks, ...args) => {
  const { content, isError } = await call(...args);
  expect(isError).toBe(true);
  expect(content).toMatch(/Log in first|only http and https/);
  expect(asked).toHaveLength(asks);
  if (name === "nobody looks on")
    expect(lines).toContainEqual(expect.objectContaining({ message: "MCP server asked" }));
});
