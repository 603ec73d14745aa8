import { describe, expect, it } from "vitest";
import { defineTool } from "../../../src/tools/tool-builder.ts";
import { runToolLoop } from "../../../src/tools/tool-loop.ts";
import type { Tool } from "../../../src/tools/types.ts";
import { callText, chatml, request, resultText, setUp, user } from "../chat/chat-fixtures.ts";
import { lastWords, loop, sleep, weather } from "./loop-fixtures.ts";

describe("runToolLoop", () => {
  it("runs the calls of a round side by side and resumes with their results in order", async () => {
    let running = 0;
    let most = 0;
    const slow = defineTool("get_weather", "").run(async ({ city }) => {
      most = Math.max(most, ++running);
      await sleep(city === "Rome" ? 30 : 5);
      running -= 1;
      return `sun in ${String(city)}`;
    }, "sky");
    const ended: string[] = [];
    const { events, results, reason } = await loop(
      [`${callText("Rome")}${callText("Oslo")}`, "Done."],
      [slow],
      {
        onToolCall: ({ call }) => ended.push(call.arguments),
      },
    );
    expect(most).toBe(2);
    expect(results).toEqual([resultText("sun in Rome", "sun in Oslo")]);
    expect(ended).toEqual(['{"city":"Oslo"}', '{"city":"Rome"}']);
    const kinds = events
      .map((event) => event.type)
      .filter((type) => type.startsWith("tool-") || type === "hold");
    expect(kinds).toEqual(["hold", "tool-start", "tool-start", "tool-end", "tool-end"]);
    expect(reason).toBe("stop");
  });

  it.each<[string, string, string, string]>([
    [
      "an unknown tool",
      callText("Rome", "get_wether"),
      'Error: there is no tool "get_wether". Did you mean get_weather?',
      "unknown:get_wether:error",
    ],
    [
      "a tool unlike any",
      callText("Rome", "zzzzzzzz"),
      'Error: there is no tool "zzzzzzzz". The tools are: get_weather.',
      "unknown:zzzzzzzz:error",
    ],
    [
      "arguments that are no object",
      '<tool_call>{"name":"get_weather","arguments":[1]}</tool_call>',
      'Error: the arguments of "get_weather" must be a JSON object. Call it again with one.',
      "function:get_weather:error",
    ],
  ])("tells the model about %s", async (_title, text, problem, end) => {
    const { results, ends, reason } = await loop([text, "Sorry."], [weather]);
    expect(results).toEqual([resultText(problem)]);
    expect(ends).toEqual([end]);
    expect(reason).toBe("stop");
  });

  it("tells the model once what the server of its tools says about them", async () => {
    const azure = { server: "azure", serverInstructions: "Ask for the region first." };
    const tools = [
      { ...weather, ...azure },
      { ...weather, ...azure, definition: { ...weather.definition, name: "get_time" } },
      { ...weather, server: "git", definition: { ...weather.definition, name: "log" } },
    ];
    const said = "# About the tools of azure\n\nAsk for the region first.";
    const system = { role: "system" as const, content: "Be brief." };
    for (const messages of [[user], [system, user]]) {
      const { engine } = await loop(["Hi."], tools, {}, undefined, { messages });
      const prompt = engine.spell(engine.generations[0]!.request.prompt);
      const before = messages.length === 1 ? "" : "Be brief.\n\n";
      expect(prompt).toContain(`system\n${before}${said}`);
      expect(prompt.split(said)).toHaveLength(2);
    }
  });

  it("runs a call that no mask held without its nulls, where the schema refuses null", async () => {
    const ran: unknown[] = [];
    const forecast = defineTool("forecast", "Forecast")
      .param("city", "string", "City", true)
      .param("days", "integer", "Days", false)
      .run((args) => {
        ran.push(args);
        return "sun";
      });
    const call = (city: string | null): string =>
      JSON.stringify({ name: "forecast", arguments: { city, days: null } }, null, 2);
    const { ends } = await loop([call("Rome"), call(null), "Sun."], [forecast]);
    expect(ran).toEqual([{ city: "Rome" }]);
    expect(ends).toEqual(["function:forecast:ok", "function:forecast:error"]);
  });

  it("tells the model about malformed arguments, failures and errors", async () => {
    const failing: Tool = {
      definition: { name: "bad", parameters: {} },
      server: "s",
      call: () => Promise.reject(new TypeError("broken")),
    };
    const refusing: Tool = {
      definition: { name: "no", parameters: {} },
      server: "s",
      call: () => Promise.resolve({ content: "denied", isError: true }),
    };
    const text = `<tool_call>{"name":"bad","arguments":{x}}</tool_call>${callText("a", "bad")}${callText("a", "no")}`;
    const { results, ends } = await loop([text, "Sorry."], [failing, refusing]);
    expect(results[0]).toMatch(
      /Error: the arguments of "bad" are not valid JSON \(.+\)\. Call it again/u,
    );
    expect(results[0]).toContain("\nError: broken\n");
    expect(results[0]).toContain("\ndenied\n");
    expect(ends.toSorted()).toEqual(["s:bad:error", "s:bad:error", "s:no:error"]);
  });

  it("tells the model about a number that JavaScript has not, and does not run the tool", async () => {
    let isRun = false;
    const counting = defineTool("count", "").run(() => {
      isRun = true;
      return Promise.resolve({ content: "1", isError: false });
    });
    const text = '<tool_call>{"name":"count","arguments":{"all":[1,4e444]}}</tool_call>';
    const { results } = await loop([text, "Sorry."], [counting]);
    expect(results[0]).toContain('arguments of "count" have at /all/1 a number beyond 1.8e308');
    expect(isRun).toBe(false);
  });

  it("passes on what a tool reports while it runs, and nothing after its end", async () => {
    const reporting = defineTool("get_weather", "").run(async (_args, { report }) => {
      report({ type: "progress", message: "half", progress: 1, total: 2 });
      await sleep(1);
      report({ type: "output", text: "sun" });
      setTimeout(() => report({ type: "output", text: "late" }), 1);
      return { content: "sun and rain", isError: false, citations: ["file:///sky"] };
    });
    const rounds = [`${callText("Rome")}`, "Fine."];
    const { events } = await loop(rounds, [reporting]);
    const told = events.flatMap<unknown>((event) => {
      if (event.type === "tool-report") return [event.report];
      return event.type === "tool-end" ? [event.citations] : [];
    });
    expect(told).toEqual([
      { type: "progress", message: "half", progress: 1, total: 2 },
      { type: "output", text: "sun" },
      ["file:///sky"],
    ]);
  });

  it("does not wait for a tool longer than its time, and aborts it", async () => {
    let aborted = false;
    const stuck = defineTool("get_weather", "").run(async (_args, { signal }) => {
      signal.addEventListener("abort", () => (aborted = true));
      await new Promise(() => {});
    });
    const { results, ends, reason } = await loop([callText("Rome"), "Later."], [stuck], {
      toolTimeoutMs: 20,
    });
    expect(results).toEqual([
      resultText('Error: the tool "get_weather" did not answer within 0.02 seconds.'),
    ]);
    expect(ends).toEqual(["function:get_weather:timeout"]);
    expect(aborted).toBe(true);
    expect(reason).toBe("stop");
  });

  it("ends as cancelled when the client leaves while a tool runs", async () => {
    const controller = new AbortController();
    const stuck = defineTool("get_weather", "").run(async () => {
      setTimeout(() => controller.abort(), 5);
      await new Promise(() => {});
    });
    const { results, ends, reason } = await loop(
      [callText("Rome"), "Never."],
      [stuck],
      {},
      controller.signal,
    );
    expect({ results, ends, reason }).toEqual({
      results: [],
      ends: ["function:get_weather:cancelled"],
      reason: "cancelled",
    });
  });

  it("aborts the tools when the loop is left", async () => {
    let aborted = false;
    const stuck = defineTool("get_weather", "").run(async (_args, { signal }) => {
      signal.addEventListener("abort", () => (aborted = true));
      await new Promise(() => {});
    });
    const { chat, engine } = setUp([callText("Rome")]);
    for await (const event of runToolLoop(chat, request(), [stuck]))
      if (event.type === "tool-start") break;
    expect(aborted).toBe(true);
    expect(engine.last.cancelled).toBe(true);
  });

  it.each<[string, boolean, string]>([
    [
      "and which optional argument may be why",
      true,
      'The result is empty. The optional argument "tail" may be why: call read again without it.',
    ],
    ["and nothing of calling again where a tool changes something", false, "The result is empty."],
  ])("tells the model that a result is empty, %s", async (_title, readOnly, told) => {
    const properties = { path: { type: "string" }, tail: { type: "number" } };
    const read: Tool = {
      definition: { name: "read", parameters: { type: "object", properties, required: ["path"] } },
      server: "files",
      readOnly,
      call: () => Promise.resolve({ content: " \n", isError: false }),
    };
    const call = '<tool_call>\n{"name":"read","arguments":{"path":"a.txt","tail":0}}\n</tool_call>';
    const { results } = await loop([call, "Nothing."], [read]);
    expect(results).toEqual([resultText(told)]);
  });

  it("says the last words in the last result where the template takes no user behind it", async () => {
    const strict = `{%- for message in messages %}
      {%- if message.role == 'user' and not loop.first and messages[loop.index0 - 1].role == 'tool' %}
        {{- raise_exception('No user after a tool.') }}
      {%- endif %}
    {%- endfor %}${chatml}`;
    const limits = { maxRounds: 1 };
    const rounds = [callText("1"), "Sun."];
    const { results, text } = await loop(
      rounds,
      [weather],
      limits,
      undefined,
      {},
      setUp(rounds, { template: strict }),
    );
    expect(results).toEqual([resultText(`sun in 1\n\n${lastWords}`)]);
    expect(text).toBe("Sun.");
  });

  it.each([
    ["tells of a limit beside an answer of a given form", '{"sun":true}', { reason: "stop" }],
    ["says why there is no answer of a given form", callText("3"), { reason: "length", calls: [] }],
  ])("%s, not in it", async (_title, last, expected) => {
    const counting = defineTool("get_weather", "").run(() => "sun");
    const rounds = [callText("1"), callText("2"), last, "Never."];
    const guidance = {
      toolChoice: "auto",
      parallel: true,
      closeAtLimit: false,
      document: { kind: "json_object" },
    } as const;
    const { events, text } = await loop(rounds, [counting], { maxRounds: 1 }, undefined, {
      guidance,
    });
    const notice = "No more tools were called: the limit of 1 rounds of tool calls is reached.";
    const isCut = expected.reason === "length";
    expect(text).toBe(isCut ? "" : last);
    expect(events.at(-1)).toMatchObject({ type: "finish", ...expected, warnings: [notice] });
    const { problem } = events.at(-1) as { problem?: string };
    expect(problem).toBe(isCut ? notice : undefined);
  });

  it("ends with length when a call was cut, and does not run it", async () => {
    let calls = 0;
    const counting = defineTool("get_weather", "").run(() => `call ${++calls}`);
    const text = `${callText("1")}<tool_call>{"name":"get_weather","arguments":{"ci`;
    const { reason } = await loop([{ text, end: "length" }], [counting]);
    expect({ reason, calls }).toEqual({ reason: "length", calls: 0 });
  });
});
