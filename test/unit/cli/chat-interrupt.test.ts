/** Ctrl-C while an answer comes, at moments that no terminal can be driven to. */

import { expect, test } from "vitest";
import type { ChatApi } from "../../../src/cli/chat/connect.ts";
import { OpenConversation } from "../../../src/cli/chat/conversation.ts";
import { Interactive } from "../../../src/cli/chat/interactive.ts";
import type { Key, Keyboard } from "../../../src/cli/chat/keyboard.ts";
import { Screen } from "../../../src/cli/chat/screen.ts";
import type { EndDetail } from "../../../src/client/types.ts";

/** @returns the exit code, and what stood on the screen, of: a question, Ctrl-C while its answer ends, Ctrl-C */
async function interrupted(end: Omit<EndDetail, "type">): Promise<[number, string]> {
  let press: (key: Key) => void = () => {};
  const lines = ["Hi", "interrupt", "end"];
  const keyboard = {
    listen(listener: typeof press) {
      press = listener;
      return () => {};
    },
    readLine: async () => lines.shift()!,
  };
  const api = {
    url: "http://localhost",
    create: async () => ({ id: "conv" }),
    startRun: async () => ({ run_id: "run" }),
    cancel: async () => {},
    async *events() {
      yield { event: { message: "Hello", citations: [], tool_calls: [] } };
      press("interrupt");
      const details = [{ type: "end", ...end }];
      yield { event: { message: "", citations: [], tool_calls: [], details } };
    },
  } as unknown as ChatApi;
  let shown = "";
  const settings = { model: undefined, tools: undefined, instructions: undefined };
  const interactive = new Interactive({
    api,
    conversation: new OpenConversation(api, settings),
    keyboard: keyboard as unknown as Keyboard,
    screen: new Screen({ write: (text) => (shown += text) }, {}),
    cwd: "/",
    showReasoning: false,
    approve: "ask",
    onResize: () => () => {},
    open: undefined,
    use: undefined,
  });
  return [await interactive.run(), shown];
}

test("it stopped the answer, which says so; the next one leaves", async () => {
  const [code, shown] = await interrupted({ status: "cancelled" });
  expect(code).toBe(130);
  expect(shown).toMatch(/Hello\nStopped\.\n$/);
});

test.each([
  [{ status: "complete" }, ""],
  [{ status: "length" }, "The answer was cut: the context or a limit is full.\n"],
  [
    { status: "failed", error: { code: "internal_error", message: "out of paper" } },
    "Failed: out of paper\n",
  ],
] as [Omit<EndDetail, "type">, string][])(
  "it came too late for %j, and says what the next one does",
  async (end, said) => {
    const [code, shown] = await interrupted(end);
    expect(code).toBe(130);
    expect(shown.slice(shown.indexOf("Hello"))).toBe(`Hello\n${said}Ctrl-C again leaves.\n`);
  },
);
