import { describe, expect, it } from "vitest";

import { defineTool } from "../../../src/tools/tool-builder.ts";
import { ToolCallBuffer } from "../../../src/chat/answer/tool-call-buffer.ts";
import { runToolRound } from "../../../src/tools/tool-round.ts";
import type { ToolCall, ToolLogger } from "../../../src/chat/types.ts";

const search = (id: string, args: string): ToolCall => ({ id, name: "search", arguments: args });
const whole = search("call_1", '{"q": "test"}');
const cut = search("call_1", '{"q": "test", "lim');

function buffer(finishReason: string | null, calls: ToolCall[]) {
  const lines: [level: string, details: object, message: string][] = [];
  const say =
    (level: string) =>
    (details: object, message: string): void =>
      void lines.push([level, details, message]);
  const logger: ToolLogger = { info: say("info"), warn: say("warn"), error: say("error") };
  const made = new ToolCallBuffer(finishReason, logger);
  for (const call of calls) made.addToolCall(call);
  return { buffer: made, lines, levels: () => lines.map(([level]) => level) };
}

describe("the seed's four cases", () => {
  it("tool calls with finish_reason stop are run", () => {
    const { buffer: made, lines } = buffer("stop", [whole]);
    expect(made.shouldExecuteToolCalls()).toBe(true);
    expect(lines).toEqual([
      ["info", { finish_reason: "stop", has_tool_calls: true, tool_calls: 1 }, "turn ended"],
      [
        "warn",
        { finish_reason: "stop", has_tool_calls: true, tool_calls: 1 },
        "tool calls with a finish reason that does not announce them",
      ],
    ]);
  });

  it("finish_reason tool_calls without tool calls runs nothing", () => {
    const { buffer: made, levels, lines } = buffer("tool_calls", []);
    expect(made.shouldExecuteToolCalls()).toBe(false);
    expect(levels()).toEqual(["info", "error"]);
    expect(lines[1]?.[2]).toBe("the finish reason announces tool calls and there are none");
  });

  it("a call truncated by the length limit is incomplete, and nothing of its turn is run", () => {
    const { buffer: made, levels, lines } = buffer("length", [cut, search("call_2", "{}")]);
    expect(made.isComplete("call_1")).toBe(false);
    expect(made.isComplete("call_2")).toBe(true);
    expect([...made.getIncompleteToolCalls()]).toEqual([["call_1", cut]]);
    expect(made.validateCompletionState()).toBe(false);
    expect(made.shouldExecuteToolCalls()).toBe(false);
    expect(levels()).toEqual(["warn", "error", "info", "warn", "error"]);
    expect(lines[1]?.[1]).toEqual({
      finish_reason: "length",
      tool_calls: 2,
      incomplete: ["call_1"],
    });
  });

  it("finish_reason tool_calls with tool calls is run", () => {
    const { buffer: made, levels } = buffer("tool_calls", [whole]);
    expect(made.shouldExecuteToolCalls()).toBe(true);
    expect(levels()).toEqual(["info"]);
  });
});

describe("ToolCallBuffer", () => {
  it.each<[reason: string | null, calls: ToolCall[], runs: boolean, levels: string[]]>([
    ["length", [whole], true, ["warn", "info", "warn"]],
    ["tool_call", [whole], true, ["info"]],
    ["function_call", [whole], true, ["info"]],
    [null, [whole], true, ["info"]],
    [null, [], false, ["info"]],
    ["stop", [], false, ["info"]],
    ["error", [whole], true, ["info", "warn"]],
    ["error", [cut], false, ["info", "warn", "error"]],
    ["content_filter", [cut], false, ["info", "warn", "error"]],
    ["something_new", [whole], true, ["info", "warn"]],
    // The turn ended by itself: the tool's error tells the model what is wrong with its JSON.
    ["tool_calls", [cut], true, ["info"]],
  ])("finish reason %s with %j", (reason, calls, runs, expected) => {
    const { buffer: made, levels } = buffer(reason, calls);
    expect(made.shouldExecuteToolCalls()).toBe(runs);
    expect(levels()).toEqual(expected);
  });

  it("takes blank arguments for none, and knows no call that was not added", () => {
    const { buffer: made } = buffer(null, [search("a", ""), search("b", " ")]);
    expect(made.isComplete("a")).toBe(true);
    expect(made.isComplete("b")).toBe(true);
    expect(made.isComplete("c")).toBe(false);
  });

  it("joins the parts of a streamed call", () => {
    const { buffer: made } = buffer("tool_calls", [search("a", ""), search("a", '{"q":')]);
    expect(made.isComplete("a")).toBe(false);
    made.addToolCall({ id: "a", name: "", arguments: '"x"}' });
    expect(made.isComplete("a")).toBe(true);
    made.addToolCall(search("a", '{"q":"y"}'));
    expect(made.isComplete("a")).toBe(true);
    expect(made.size).toBe(1);
  });
});

describe("runToolRound", () => {
  const ran: string[] = [];
  const tool = defineTool("search", "")
    .param("q", "string", "", true)
    .run(({ q }) => {
      ran.push(String(q));
      return `found ${String(q)}`;
    });

  async function round(finishReason: string | null, calls: ToolCall[]) {
    ran.length = 0;
    const rounds = runToolRound({ calls, finishReason }, [tool], {
      signal: new AbortController().signal,
    });
    for (;;) {
      const step = await rounds.next();
      if (step.done === true) return step.value;
    }
  }

  it("runs another server's calls whatever reason it gives", async () => {
    for (const reason of ["stop", "tool_call", null]) {
      expect(await round(reason, [whole])).toEqual([
        { callId: "call_1", name: "search", content: "found test" },
      ]);
    }
  });

  it("runs nothing of a turn that was cut inside of a call", async () => {
    expect(await round("length", [search("call_2", '{"q": "a"}'), cut])).toBeNull();
    expect(await round("error", [cut])).toBeNull();
    expect(ran).toEqual([]);
  });

  it("never runs an incomplete call, and tells the model", async () => {
    const outputs = await round("tool_calls", [cut, search("call_2", '{"q": "a"}')]);
    expect(outputs?.[0]?.content).toContain("are not valid JSON");
    expect(outputs?.[1]?.content).toBe("found a");
    expect(ran).toEqual(["a"]);
  });
});
