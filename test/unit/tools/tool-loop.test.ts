import { describe, expect, it } from "vitest";

import type { ChatEvent, ChatRequest, ToolDefinition } from "../../../src/chat/types.ts";
import { defineTool } from "../../../src/tools/tool-builder.ts";
import { type ToolLoopOptions, runToolLoop } from "../../../src/tools/tool-loop.ts";
import type { Tool, ToolEvent } from "../../../src/tools/types.ts";
import { callText, chatml, request, resultText, setUp } from "../chat/chat-fixtures.ts";

const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

const lastWords =
  "No more tools can be called. Answer my question now, in words, with what the results above say.\n\nMy question was: Weather?";
const repeatWords =
  "The same call gave the same result again. Do something else, or answer my question in words with what the results above say.\n\nMy question was: Weather?";

/** Results, and what the user says behind them. */
function resultsAndWords(words: string, ...contents: string[]): string {
  const said = `⟪<|im_start|>⟫user\n${words}⟪<|im_end|>⟫\n⟪<|im_start|>⟫assistant\n`;
  return resultText(...contents).replace("⟪<|im_start|>⟫assistant\n", said);
}

const weather = defineTool("get_weather", "Weather")
  .param("city", "string", "City", true)
  .run(({ city }) => `sun in ${String(city)}`);

async function loop(
  rounds: Parameters<typeof setUp>[0],
  tools: Tool[],
  options: ToolLoopOptions = {},
  signal?: AbortSignal,
  more: Partial<ChatRequest> = {},
  world = setUp(rounds),
) {
  const events: (ChatEvent | ToolEvent)[] = [];
  for await (const event of runToolLoop(world.chat, request({ signal, ...more }), tools, {
    logger: world.logger,
    ...options,
  }))
    events.push(event);
  const results = world.engine.generations.flatMap((generation) =>
    generation.resumes.map((resume) => world.engine.spell(resume.tokens)),
  );
  const ends = events
    .filter((event) => event.type === "tool-end")
    .map((event) => `${event.server}:${event.call.name}:${event.outcome}`);
  const finish = events.at(-1);
  const text = events.map((event) => (event.type === "content" ? event.text : "")).join("");
  return {
    ...world,
    events,
    text,
    results,
    ends,
    reason: finish?.type === "finish" ? finish.reason : undefined,
  };
}

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

  it("stops after the last round: the model is told, further calls are not run, and it answers", async () => {
    let calls = 0;
    const counting = defineTool("get_weather", "").run(() => `call ${++calls}`);
    const rounds = [callText("1"), callText("2"), callText("3"), "Two calls."];
    const { results, warnings, events, text, engine } = await loop(rounds, [counting], {
      maxRounds: 2,
    });
    expect(calls).toBe(2);
    expect(results).toEqual([
      resultText("call 1"),
      resultsAndWords(lastWords, "call 2"),
      resultsAndWords(lastWords, "Error: not run: the limit of 2 rounds of tool calls is reached."),
    ]);
    const told = "No more tools were called: the limit of 2 rounds of tool calls is reached.";
    expect(text).toBe(`Two calls.\n\n[${told}]`);
    expect(events.at(-1)).toMatchObject({ type: "finish", reason: "stop", warnings: [told] });
    expect(warnings).toEqual(["a limit is reached: the model answers without tools"]);
    expect(events.filter((event) => event.type === "finish")).toHaveLength(1);
    // The same sequence goes on, and only its last round has a grammar that lets no call through.
    expect(engine.generations).toHaveLength(1);
    const calling = engine.grammars.map(({ text: grammar }) => grammar.includes("first_call"));
    expect(calling).toEqual([true, true, true, false]);
  });

  it("says nothing of a limit that the model keeps", async () => {
    const counting = defineTool("get_weather", "").run(() => "sun");
    const { text, events } = await loop([callText("1"), "Sun."], [counting], {
      maxRounds: 1,
      maxCalls: 1,
    });
    expect(text).toBe("Sun.");
    expect(events.at(-1)).not.toHaveProperty("warnings");
  });

  it("lets a model of a build without masks call no tool in its last turn", async () => {
    let calls = 0;
    const counting = defineTool("get_weather", "").run(() => `call ${++calls}`);
    const again = `Again. ${callText("2")}`;
    const rounds = [callText("1"), callText("2"), again, "Never."];
    const { text, reason, warnings } = await loop(rounds, [counting], { maxRounds: 1 });
    expect(text).toBe(
      "Again.\n\n[No more tools were called: the limit of 1 rounds of tool calls is reached.]",
    );
    expect({ calls, reason }).toEqual({ calls: 1, reason: "stop" });
    expect(warnings).toContain("the model calls tools beyond its limits: not run");
  });

  it("leaves the client's own tools callable after a limit", async () => {
    const client: ToolDefinition = { name: "mine", parameters: { type: "object" } };
    const { engine, events } = await loop(
      [callText("1"), callText("2"), callText("3", "mine")],
      [weather],
      {
        maxCalls: 1,
        offered: [weather.definition, client],
        handsOver: ({ name }) => name === "mine",
      },
    );
    expect(engine.grammars.at(-1)?.text).toContain("mine");
    expect(engine.grammars.at(-1)?.text).not.toContain('"get_weather');
    expect(events.at(-1)).toMatchObject({
      reason: "tool_calls",
      calls: [{ name: "mine" }],
      warnings: ["No more tools were called: the limit of 1 tool calls is reached."],
    });
  });

  it("runs so many calls and no more, over all rounds", async () => {
    let calls = 0;
    const counting = defineTool("get_weather", "").run(() => `call ${++calls}`);
    const rounds = [callText("1"), callText("2") + callText("3"), "Two."];
    const { results, reason, text } = await loop(rounds, [counting], { maxCalls: 2 });
    const refusal = "Error: not run: the limit of 2 tool calls is reached.";
    expect(results).toEqual([resultText("call 1"), resultsAndWords(lastWords, "call 2", refusal)]);
    expect(text).toBe("Two.\n\n[No more tools were called: the limit of 2 tool calls is reached.]");
    expect({ calls, reason }).toEqual({ calls: 2, reason: "stop" });
  });

  it("stops what runs when its time is over, and runs nothing then", async () => {
    let calls = 0;
    const stuck = defineTool("get_weather", "").run(async () => {
      calls += 1;
      await new Promise(() => {});
    });
    const rounds = [callText("1"), callText("2"), "Nothing came."];
    const { results, ends, reason, text } = await loop(rounds, [stuck], { maxSeconds: 1 });
    expect(results).toEqual([
      resultText(
        'Error: the tool "get_weather" was stopped: the limit of 1 seconds for the tools of one answer is reached.',
      ),
      resultsAndWords(lastWords, "Error: not run: the limit of 1 seconds is reached."),
    ]);
    expect(ends).toEqual(["function:get_weather:timeout", "function:get_weather:error"]);
    expect(text).toBe(
      "Nothing came.\n\n[No more tools were called: the limit of 1 seconds is reached.]",
    );
    expect({ calls, reason }).toEqual({ calls: 1, reason: "stop" });
  });

  it("refuses equal calls, and lets a model that goes on with them answer", async () => {
    let calls = 0;
    const counting = defineTool("get_weather", "").run(() => `call ${++calls}`);
    const { results, reason, text } = await loop(
      [...Array.from({ length: 5 }, () => callText("Rome")), "Three calls."],
      [counting],
    );
    expect({ calls, rounds: results.length, reason }).toEqual({
      calls: 3,
      rounds: 5,
      reason: "stop",
    });
    expect(results[3]).toContain("Error: not run: the same call was made 4 times in a row");
    expect(results.map((result) => result.includes(repeatWords))).toEqual([
      false,
      false,
      false,
      true,
      false,
    ]);
    expect(results[4]).toContain(lastWords);
    expect(text).toBe(
      "Three calls.\n\n[No more tools were called: the limit of equal calls in a row is reached.]",
    );
  });

  it("refuses the third of equal calls with equal results, and the model answers at once", async () => {
    const rounds = [callText("Rome"), callText("Rome"), callText("Rome"), "Sun."];
    const { results, text } = await loop(rounds, [weather]);
    expect(results[1]).toBe(resultsAndWords(repeatWords, "sun in Rome"));
    expect(results[2]).toContain("not run: the same call was made 3 times in a row");
    expect(results[2]).toContain(lastWords);
    expect(text).toBe(
      "Sun.\n\n[No more tools were called: the limit of equal calls in a row is reached.]",
    );
  });

  it("tells of calls that went round in a circle, and not of results that changed", async () => {
    let changes = 0;
    const tool = defineTool("get_weather", "").run(({ city }) =>
      city === "Oslo" ? `rain ${++changes}` : "sun",
    );
    const rounds = [..."RORO"].map((letter) => callText(letter === "R" ? "Rome" : "Oslo"));
    const { results, text } = await loop([...rounds, "Sun and rain."], [tool]);
    expect(results).toEqual([
      resultText("sun"),
      resultText("rain 1"),
      resultsAndWords(repeatWords, "sun"),
      resultText("rain 2"),
    ]);
    expect(text).toBe("Sun and rain.");
  });

  it("knows a call again whose arguments are written in another way", async () => {
    let calls = 0;
    const written = [
      '{"city":"Rome","at":{"x":1,"y":[100]}}',
      '{ "at": {"y": [1e2], "x": 1.0},\n "city": "R\\u006fme" }',
      '{"city":"Rome","at":{"y":[100.0],"x":1}}',
      '{"city":"Rome","at":{"x":1,"y":[100]}}',
    ].map((text) => `<tool_call>\n{"name":"get_weather","arguments":${text}}\n</tool_call>`);
    const counting = defineTool("get_weather", "").run(() => `call ${++calls}`);
    const { results } = await loop([...written, "Three calls."], [counting]);
    expect(calls).toBe(3);
    expect(results[3]).toContain("not run: the same call was made 4 times in a row");
  });

  it("lets a model answer anew that repeats itself behind results", async () => {
    const endless = { text: `Well: ${"ha ".repeat(1000)}`, end: "never" as const };
    const { engine, events, results, text, reason, warnings } = await loop(
      [callText("Rome"), endless, "Sun."],
      [weather],
    );
    const said = `⟪<|im_end|>⟫\n⟪<|im_start|>⟫user\n${lastWords}⟪<|im_end|>⟫\n⟪<|im_start|>⟫assistant\n`;
    expect(results).toEqual([resultText("sun in Rome"), said]);
    expect(engine.grammars.at(-1)?.text).not.toContain("first_call");
    const notice = "No more tools were called: the limit of repeated text is reached.";
    expect(text).toMatch(/^Well: (ha ){100,110}h?a?Sun\./u);
    expect(text.endsWith(`Sun.\n\n[${notice}]`)).toBe(true);
    expect(events.at(-1)).toMatchObject({ type: "finish", warnings: [notice] });
    expect(reason).toBe("stop");
    expect(warnings).toContain("the answer repeats itself: stopped");
  });

  it("stops a last turn that repeats itself, and text that does so before any result", async () => {
    const endless = { text: "ha ".repeat(1000), end: "never" as const };
    const stopped = "[The answer was stopped: it repeated itself.]";
    const last = await loop([callText("Rome"), endless, endless], [weather]);
    expect(last.results).toHaveLength(2);
    expect(last.text).toContain(stopped);
    expect(last.reason).toBe("stop");
    const first = await loop([endless], [weather]);
    expect(first.results).toEqual([]);
    expect(first.text.endsWith(stopped)).toBe(true);
  });

  it("keeps tokens for an answer", async () => {
    let calls = 0;
    const counting = defineTool("get_weather", "").run(() => `call ${++calls}`);
    const rounds = [callText("1"), callText("2"), "Two calls."];
    // Of the fake engine: two calls take 104.
    const more = { maxTokens: 130 };
    const { results, text, reason, engine } = await loop(rounds, [counting], {}, undefined, more);
    expect(results).toEqual([resultText("call 1"), resultsAndWords(lastWords, "call 2")]);
    expect(engine.grammars.at(-1)?.text).not.toContain("first_call");
    const told = "No more tools were called: the limit of 98 tokens for calls is reached.";
    expect({ text, reason }).toEqual({ text: `Two calls.\n\n[${told}]`, reason: "stop" });
  });

  it("lets the model answer when a second round's results do not fit the context", async () => {
    const long = defineTool("get_weather", "").run(() => "rain ".repeat(400));
    const rounds = [callText("1"), callText("2"), "Rain."];
    const world = setUp(rounds, { contextSize: 2000 });
    const { results, text, engine } = await loop(rounds, [long], {}, undefined, {}, world);
    expect(results[0]).toMatch(/characters of the tool's result were cut/u);
    expect(results.map((result) => result.includes(lastWords))).toEqual([false, true]);
    expect(engine.grammars.at(-1)?.text).not.toContain("first_call");
    expect(text).toBe("Rain.\n\n[No more tools were called: the limit of the context is reached.]");
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
    expect(results).toEqual([resultText(`sun in 1\n\n[${lastWords}]`)]);
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
