/** Where a tool loop ends: rounds, calls, time, equal calls, tokens; and what the model still says. */

import { describe, expect, it } from "vitest";
import type { ToolDefinition } from "../../../src/chat/types.ts";
import { defineTool } from "../../../src/tools/tool-builder.ts";
import { callText, resultText, setUp } from "../chat/chat-fixtures.ts";
import { lastWords, loop, repeatWords, resultsAndWords, weather } from "./loop-fixtures.ts";

describe("runToolLoop", () => {
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
});
