/** Calls of tools that only read, which start while the model goes on. Judged by the order of events. */

import { describe, expect, it } from "vitest";

import type { ChatEvent, ChatRequest, ToolCall } from "../../../src/chat/types.ts";
import { defineTool } from "../../../src/tools/tool-builder.ts";
import { type ToolLoopOptions, runToolLoop } from "../../../src/tools/tool-loop.ts";
import type { Tool, ToolCallContext, ToolEvent } from "../../../src/tools/types.ts";
import { callText, request, resultText, setUp } from "../chat/chat-fixtures.ts";

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

interface World {
  tool: Tool;
  /** Cities in the order their calls ran, ended and were aborted. */
  ran: string[];
  ended: string[];
  aborted: string[];
}

/** Ends at once, or when `until` does. */
function world(until: (city: string, context: ToolCallContext) => unknown = () => {}): World {
  const ran: string[] = [];
  const ended: string[] = [];
  const aborted: string[] = [];
  const tool = defineTool("get_weather", "")
    .param("city", "string", "City", true)
    .readOnly()
    .run(async ({ city }, context) => {
      const name = String(city);
      ran.push(name);
      context.signal.addEventListener("abort", () => aborted.push(name));
      await until(name, context);
      ended.push(name);
      return `sun in ${name}`;
    });
  return { tool, ran, ended, aborted };
}

/** What happened, one word each: `call:Rome` is the end of its arguments. */
function word(event: ChatEvent | ToolEvent): string {
  const city = (call: ToolCall): string => /"city":"(\w+)"/u.exec(call.arguments)?.[1] ?? "";
  switch (event.type) {
    case "call-end":
      return `call:${city(event.call)}`;
    case "tool-start":
      return `start:${city(event.call)}`;
    case "tool-report":
      return `report:${city(event.call)}`;
    case "tool-end":
      return `end:${city(event.call)}:${event.outcome}`;
    default:
      return event.type;
  }
}

async function loop(
  rounds: Parameters<typeof setUp>[0],
  tools: Tool[],
  options: ToolLoopOptions & Pick<ChatRequest, "signal"> = {},
) {
  const { signal, ...limits } = options;
  const { chat, engine, warnings, logger } = setUp(rounds);
  const events: (ChatEvent | ToolEvent)[] = [];
  let error: unknown;
  try {
    for await (const event of runToolLoop(chat, request({ signal }), tools, { logger, ...limits }))
      events.push(event);
  } catch (thrown) {
    error = thrown;
  }
  const words = events.map(word).filter((it) => it !== "content" && it !== "call-arguments");
  const results = engine.generations.flatMap(({ resumes }) =>
    resumes.map(({ tokens }) => engine.spell(tokens)),
  );
  return { engine, events, words, results, warnings, error };
}

const two = `${callText("Rome")}${callText("Oslo")}`;

describe("a call of a tool that only reads", () => {
  it("starts when its arguments are complete, before those of the next call are written", async () => {
    const { tool, ran } = world();
    const { events, words, results } = await loop([two, "Done."], [tool]);
    const at = (type: string, index: number): number =>
      events.findIndex((event) => event.type === type && "index" in event && event.index === index);
    const started = events.findIndex((event) => event.type === "tool-start");
    expect(started).toBeGreaterThan(at("call-end", 0));
    expect(started).toBeLessThan(at("call-start", 1));
    expect(words).toEqual([
      "call-start",
      "call:Rome",
      "start:Rome",
      "call-start",
      "call:Oslo",
      "start:Oslo",
      "hold",
      "end:Rome:ok",
      "end:Oslo:ok",
      "finish",
    ]);
    expect(ran).toEqual(["Rome", "Oslo"]);
    expect(results).toEqual([resultText("sun in Rome", "sun in Oslo")]);
  });

  it("is over before the next one is written, and its result is kept for the round's end", async () => {
    const ended: string[] = [];
    const { tool } = world();
    const texts: string[] = [];
    const { chat } = setUp([two, "Done."]);
    const onToolCall = ({ call }: { call: ToolCall }): void => void ended.push(call.arguments);
    for await (const event of runToolLoop(chat, request(), [tool], { onToolCall })) {
      await turn();
      if (event.type === "call-start") texts.push(`${event.index}:${ended.length}`);
      if (event.type === "hold") texts.push(`hold:${ended.length}`);
    }
    expect(texts).toEqual(["0:0", "1:1", "hold:2"]);
  });

  it("runs beside those that wait for the round's end", async () => {
    let release = (): void => {};
    const both = new Promise<void>((resolve) => (release = resolve));
    const { tool, ran } = world(() => both);
    const writing = defineTool("set_weather", "").run(() => {
      ran.push("written");
      release();
      return "ok";
    });
    const { words, results } = await loop(
      [`${callText("Rome")}${callText("Oslo", "set_weather")}`, "Done."],
      [tool, writing],
    );
    expect(words.slice(1)).toEqual([
      "call:Rome",
      "start:Rome",
      "call-start",
      "call:Oslo",
      "hold",
      "start:Oslo",
      "end:Oslo:ok",
      "end:Rome:ok",
      "finish",
    ]);
    expect(ran).toEqual(["Rome", "written"]);
    expect(results).toEqual([resultText("sun in Rome", "ok")]);
  });

  it("reports while the model goes on", async () => {
    const { tool } = world((_city, { report }) => report({ type: "progress", message: "looking" }));
    const { words } = await loop([two, "Done."], [tool]);
    expect(words.indexOf("report:Rome")).toBeLessThan(words.lastIndexOf("call-start"));
  });

  it.each([
    ["length", "finish"],
    ["stop_string", "finish"],
  ] as const)("comes to nothing when its turn ends by %s", async (end, last) => {
    const { tool, ran, aborted } = world(() => new Promise(() => {}));
    const text = `${callText("Rome")}<tool_call>\n{"name":"get_weather","arguments":{"ci`;
    const { words, results } = await loop([{ text, end }], [tool]);
    expect(ran).toEqual(["Rome"]);
    expect(aborted).toEqual(["Rome"]);
    expect(results).toEqual([]);
    expect(words.slice(-2)).toEqual(["end:Rome:cancelled", last]);
  });

  it("is aborted when the generation fails", async () => {
    const { tool, aborted } = world(() => new Promise(() => {}));
    const { error } = await loop([{ text: callText("Rome"), end: "fail" }], [tool]);
    expect(error).toMatchObject({ code: "decode_failed" });
    expect(aborted).toEqual(["Rome"]);
  });

  it("is aborted when the client leaves, whether it reads events or waits for one", async () => {
    const controller = new AbortController();
    const { tool, aborted } = world((city) => {
      if (city === "Oslo") controller.abort();
      return new Promise(() => {});
    });
    const { words } = await loop([{ text: two, end: "never" }], [tool], {
      signal: controller.signal,
    });
    expect(aborted).toEqual(["Rome", "Oslo"]);
    expect(words.at(-1)).toBe("finish");

    const other = world(async (_city, { report }) => {
      await turn();
      report({ type: "progress" });
      await new Promise(() => {});
    });
    const { chat, engine } = setUp([{ text: callText("Rome"), end: "never" }]);
    // The report comes while the model's next event is waited for.
    for await (const event of runToolLoop(chat, request(), [other.tool]))
      if (event.type === "tool-report") break;
    expect(other.aborted).toEqual(["Rome"]);
    expect(engine.last.cancelled).toBe(true);
  });

  it("is not run beyond the limit of calls", async () => {
    const { tool, ran } = world();
    const { words, results } = await loop([two, "Done."], [tool], { maxCalls: 1 });
    expect(ran).toEqual(["Rome"]);
    expect(words.indexOf("start:Oslo")).toBeGreaterThan(words.indexOf("hold"));
    expect(results[0]).toContain("not run: the limit of 1 tool calls is reached");
  });

  it("is not run beyond the limit of rounds", async () => {
    const { tool, ran } = world();
    const rounds = [callText("a"), callText("b"), callText("c"), "Never."];
    const { words } = await loop(rounds, [tool], { maxRounds: 2 });
    expect(ran).toEqual(["a", "b"]);
    expect(words.at(-1)).toBe("finish");
  });

  it("waits for the round's end when the model may be repeating itself", async () => {
    const { tool, ran } = world();
    let count = 0;
    const changing: Tool = {
      ...tool,
      call: async (args, context) => {
        const result = await tool.call(args, context);
        return { ...result, content: `${result.content} ${++count}` };
      },
    };
    const rounds = [two, two, two, two, `${callText("Rome")}${callText("Bonn")}`, "Done."];
    const { words, results } = await loop(rounds, [changing]);
    expect(ran).toEqual(["Rome", "Oslo", "Rome", "Oslo", "Rome", "Oslo", "Bonn", "Rome"]);
    expect(results[3]).toContain("the same call was made 4 times in a row");
    const holds = words.flatMap((it, index) => (it === "hold" ? [index] : []));
    const startsBefore = holds.map(
      (end, round) =>
        words.slice(holds[round - 1] ?? 0, end).filter((it) => it.startsWith("start:")).length,
    );
    // Starts after a hold count for the next round: the refused round's two, the doubtful one's first.
    expect(startsBefore).toEqual([2, 2, 2, 0, 2 + 1]);
  });

  it("is left alone when somebody else is to run it", async () => {
    const { tool, ran } = world();
    const { words } = await loop([two], [tool], {
      handsOver: ({ arguments: text }) => text.includes("Oslo"),
    });
    expect(ran).toEqual(["Rome"]);
    expect(words).not.toContain("start:Oslo");
  });

  it("waits for the round's end when a person must approve it", async () => {
    const { tool } = world();
    const { words } = await loop([callText("Rome"), "Sorry."], [{ ...tool, approval: "always" }]);
    expect(words.indexOf("start:Rome")).toBeGreaterThan(words.indexOf("hold"));
    expect(words).toContain("end:Rome:denied");
  });

  it("is refused like any other when its arguments are wrong", async () => {
    const { tool, ran } = world();
    const bad = '<tool_call>{"name":"get_weather","arguments":{x}}</tool_call>';
    const { results } = await loop([bad, "Sorry."], [tool]);
    expect(ran).toEqual([]);
    expect(results[0]).toContain("are not valid JSON");
  });
});
