/** A round that makes the same calls over and over ends before its third equal one. A token is a character here. */

import { describe, expect, it } from "vitest";
import { Chat } from "../../../src/chat/chat.ts";
import { formats } from "../../../src/chat/formats/formats.ts";
import { writeCalls } from "../../../src/chat/formats/write-calls.ts";
import type { ChatEvent, ChatRequest, ToolCall } from "../../../src/chat/types.ts";
import { defineTool } from "../../../src/tools/tool-builder.ts";
import { runToolLoop } from "../../../src/tools/tool-loop.ts";
import { tools as knownTools } from "../../support/format-tools.ts";
import { callText, chatml, request, run, setUp, user } from "./chat-fixtures.ts";
import type { FakeEngineOptions } from "./fake-engine.ts";

const notice = "A round of tool calls was stopped where the same call came for the third time.";
const warning = "the same call comes for the third time in a round: the round is stopped";
const rome = callText("Rome");
const oslo = callText("Oslo");
const circle = (rome + oslo).repeat(4);

function call(args: string, name = "get_weather"): string {
  return `<tool_call>\n{"name":"${name}","arguments":${args}}\n</tool_call>`;
}

async function say(
  text: NonNullable<FakeEngineOptions["rounds"]>[number],
  partial: Partial<ChatRequest> = {},
  { stopsRepetition = true, ...options }: Partial<FakeEngineOptions> & StopOption = {},
) {
  const world = setUp([text], options);
  const chat = new Chat(world.engine, { stopsRepetition });
  const asked = request({ toolMode: "external", logger: world.logger, ...partial });
  return { ...world, chat, ...(await run(chat, asked)) };
}

interface StopOption {
  stopsRepetition?: boolean;
}

const cityOf = ({ arguments: text }: ToolCall): unknown => JSON.parse(text).city;

/** What was told of calls: the name and the pieces of the arguments of each, and whether it ended. */
function toldCalls(events: readonly ChatEvent[]) {
  const told: { name: string; pieces: string[]; ended: boolean }[] = [];
  for (const event of events) {
    if (event.type === "call-start") told.push({ name: event.name, pieces: [], ended: false });
    else if (event.type === "call-arguments") told[event.index]!.pieces.push(event.delta);
    else if (event.type === "call-end") told[event.index]!.ended = true;
  }
  return told;
}

const withoutIds = (events: readonly ChatEvent[]): unknown[] =>
  events
    .filter(({ type }) => type.startsWith("call-"))
    .map((event) => JSON.stringify(event).replaceAll(/call_\w{24}/gu, "id"));

describe("calls that a client runs", () => {
  it.each([1, 3, 1000])("end before the third equal one, in pieces of %i", async (chunk) => {
    const { events, content, finish, engine, warnings } = await say(circle, {}, { chunk });
    expect(finish.calls.map(cityOf)).toEqual(["Rome", "Oslo", "Rome", "Oslo"]);
    expect(finish).toMatchObject({ reason: "tool_calls", warnings: [notice] });
    expect(new Set(finish.calls.map(({ id }) => id)).size).toBe(4);
    const told = toldCalls(events);
    expect(told.map(({ pieces }) => pieces.join(""))).toEqual(
      finish.calls.map(({ arguments: text }) => text),
    );
    expect(told.every(({ ended }) => ended)).toBe(true);
    expect(content).toBe("");
    expect(engine.last.released).toBe(true);
    expect(warnings).toEqual([warning]);
  });

  it("may be equal twice", async () => {
    const { finish, warnings } = await say(rome + oslo + rome + oslo);
    expect(finish.calls.map(cityOf)).toEqual(["Rome", "Oslo", "Rome", "Oslo"]);
    expect(finish.reason).toBe("tool_calls");
    expect(finish).not.toHaveProperty("warnings");
    expect(warnings).toEqual([]);
  });

  it("are equal whatever their spaces and the order of their keys", async () => {
    const one = call('{"city":"Rome","days":1}');
    const other = call('{ "days": 1, "city": "Rome" }');
    const third = await say(one + other + one + oslo);
    expect(third.finish.calls).toHaveLength(2);
    expect(third.finish.warnings).toEqual([notice]);
    // It was told before it was known.
    const inAThirdWay = await say(one + other + call('{"days":1,"city":"Rome"}') + oslo);
    expect(inAThirdWay.finish.calls.map(cityOf)).toEqual(["Rome", "Rome", "Rome"]);
    expect(inAThirdWay.finish.warnings).toEqual([notice]);
  });

  it("differ in digits that numbers of JavaScript's have not, and in their tools", async () => {
    const big = ["12345678901234567", "12345678901234568", "12345678901234569"];
    const calls = big.map((id) => call(`{"city":"Rome","id":${id}}`));
    const { finish } = await say(calls.join("") + rome + rome + call('{"city":"Rome"}', "ping"));
    expect(finish.calls).toHaveLength(6);
    expect(finish).not.toHaveProperty("warnings");
  });

  it.each([
    ["longer", '{"city":"Romeo"}'],
    ["with more", '{"city":"Rome","days":2}'],
    ["shorter", '{"city":"Rom"}'],
    ["empty", "{}"],
  ])("that only begin like it are told whole: %s", async (_title, args) => {
    const { finish, events } = await say(rome + rome + call(args) + oslo, {}, { chunk: 1 });
    expect(finish.calls.map((made) => made.arguments)).toEqual([
      '{"city":"Rome"}',
      '{"city":"Rome"}',
      args,
      '{"city":"Oslo"}',
    ]);
    expect(toldCalls(events).map(({ pieces }) => pieces.join(""))[2]).toBe(args);
    expect(finish).not.toHaveProperty("warnings");
  });

  it("wait only as long as they may be the third", async () => {
    const args = '{"city":"Romeo and Juliet"}';
    const { events } = await say(rome + rome + call(args), {}, { chunk: 1 });
    const [first, ...rest] = toldCalls(events)[2]!.pieces;
    expect(first).toBe('{"city":"Romeo');
    expect(rest).toEqual([...' and Juliet"}']);
  });

  it("that are not begun alike are told when they are written", async () => {
    const others = call('{"city":"Rome"}', "ping") + call("{}", "ping");
    const text = rome + oslo + callText("Bern") + rome + others;
    const watched = await say(text, {}, { chunk: 1 });
    const free = await say(text, {}, { chunk: 1, stopsRepetition: false });
    expect(withoutIds(watched.events)).toEqual(withoutIds(free.events));
    expect(watched.finish.calls).toHaveLength(6);
  });

  it("that the token limit cuts are told as far as they came", async () => {
    const cut = rome.slice(0, rome.indexOf("ome"));
    const { events, finish } = await say({ text: rome + rome + cut, end: "length" });
    expect(finish.reason).toBe("length");
    expect(toldCalls(events).map(({ pieces, ended }) => [pieces.join(""), ended])).toEqual([
      ['{"city":"Rome"}', true],
      ['{"city":"Rome"}', true],
      ['{"city":"R', false],
    ]);
  });

  it.each(["length", "end", "text_after_call", "stop_string"] as const)(
    "end there, even if the engine has come to its own end: %s",
    async (end) => {
      const round = { text: `${circle}And so on.`, end, isAhead: true };
      const { finish, content } = await say(round);
      expect(finish.calls.map(cityOf)).toEqual(["Rome", "Oslo", "Rome", "Oslo"]);
      expect(finish).toMatchObject({ reason: "tool_calls", warnings: [notice] });
      expect(finish).not.toHaveProperty("stopString");
      expect(content).toBe("");
    },
  );

  it("end before the third one in reasoning that was not closed, too", async () => {
    const template = `${chatml}{# <think> #}`;
    const { finish, events } = await say(`<think>Hm.\n${circle}`, {}, { template });
    expect(finish.calls.map(cityOf)).toEqual(["Rome", "Oslo", "Rome", "Oslo"]);
    expect(finish).toMatchObject({ reason: "tool_calls", warnings: [notice] });
    expect(toldCalls(events)).toHaveLength(4);
  });

  it("are in the next prompt as the client sends them, and no more", async () => {
    const { chat, engine, finish } = await say(circle, {}, { chunk: 1000 });
    const messages: ChatRequest["messages"] = [
      user,
      { role: "assistant", content: "", toolCalls: finish.calls },
      ...finish.calls.map(({ id }) => ({ role: "tool" as const, toolCallId: id, content: "sun" })),
    ];
    await run(chat, request({ toolMode: "external", messages }));
    const fresh = setUp([]);
    await run(fresh.chat, request({ toolMode: "external", messages }));
    expect(engine.spell(engine.last.request.prompt)).toBe(
      fresh.engine.spell(fresh.engine.last.request.prompt),
    );
  });

  it.each<[string, Partial<ChatRequest>, StopOption]>([
    ["by the option", {}, { stopsRepetition: false }],
    [
      "in a request that ignores the end",
      { sampling: { ...request().sampling, ignoresEnd: true } },
      {},
    ],
  ])("are all made where they may be: %s", async (_title, partial, options) => {
    const { finish } = await say(circle, partial, options);
    expect(finish.calls).toHaveLength(8);
    expect(finish).not.toHaveProperty("warnings");
  });
});

describe.each(formats)("$name", ({ name, syntax }) => {
  const one = ["get_weather", { city: "Rome" }] as const;
  const other = ["get_weather", { city: "Oslo" }] as const;
  const text = writeCalls(syntax, [one, other, one, other, one, other]);

  it.each([true, false])("ends before its third equal call, with masks: %s", async (masks) => {
    for (const chunk of [1, 1000]) {
      const { engine } = setUp([text], { chunk });
      engine.refusesGrammars = !masks;
      const chat = new Chat(engine, { toolFormat: name });
      const asked = request({ tools: knownTools, toolMode: "external" });
      const { finish, events, content } = await run(chat, asked);
      expect(finish.calls.map(cityOf)).toEqual(["Rome", "Oslo", "Rome", "Oslo"]);
      expect(finish).toMatchObject({ reason: "tool_calls", warnings: [notice] });
      expect(toldCalls(events)).toHaveLength(4);
      expect(content.trim()).toBe("");
    }
  });
});

describe("calls that the server runs", () => {
  const promptOf = (engine: ReturnType<typeof setUp>["engine"]): string =>
    engine.spell(engine.last.request.prompt);

  it.each([3, 1000])("go on with an answer, in pieces of %i", async (chunk) => {
    const { chat, engine, logger } = setUp([`Look.\n${circle}`, "Sunny."], { chunk });
    const answers = [["sun 1", "sun 2", "sun 3", "sun 4"]];
    const { events, content, finish } = await run(chat, request({ logger }), answers);
    expect(content).toBe("Look.Sunny.");
    expect(finish).toMatchObject({ reason: "stop", calls: [], warnings: [notice] });
    const holds = events.filter((event) => event.type === "hold");
    expect(holds.map(({ calls }) => calls.map(cityOf))).toEqual([["Rome", "Oslo", "Rome", "Oslo"]]);
    // What was held is not what the calls stand for: the prompt is rendered.
    expect(holds[0]!.turn).toBeUndefined();
    expect(engine.generations).toHaveLength(2);
    expect(engine.generations[0]!.released).toBe(true);
    expect(engine.generations[0]!.resumes).toEqual([]);
    const reference = setUp([]);
    const messages: ChatRequest["messages"] = [
      user,
      { role: "assistant", content: "Look.", toolCalls: holds[0]!.calls },
      ...holds[0]!.calls.map(({ id }, index) => ({
        role: "tool" as const,
        toolCallId: id,
        content: `sun ${index + 1}`,
      })),
    ];
    await run(reference.chat, request({ messages }));
    expect(promptOf(engine)).toBe(promptOf(reference.engine));
    // The template has no part in it.
    expect(chat.counters.rerenders).toBe(0);
  });

  it("are not extended by results behind what does not count", async () => {
    const { chat, engine } = setUp([circle, "Sunny."]);
    const generation = chat.generate(request());
    for await (const event of generation) {
      if (event.type !== "hold") continue;
      const outputs = event.calls.map(({ id, name }) => ({ callId: id, name, content: "sun" }));
      generation.extend(outputs[0]!, true);
      for (let i = 0; i < 20; i++) await new Promise((resolve) => setImmediate(resolve));
      await generation.resume(outputs);
    }
    expect(engine.generations.flatMap(({ extensions }) => extensions)).toEqual([]);
    expect(chat.counters.unextendedHolds).toBe(0);
  });

  it.each([true, false])("run at most twice each; begun early: %s", async (isEarly) => {
    const ran: unknown[] = [];
    const built = defineTool("get_weather", "").param("city", "string", "City", true);
    const tool = (isEarly ? built.readOnly() : built).run(({ city }) => {
      ran.push(city);
      return `sun in ${String(city)}`;
    });
    const { chat } = setUp([circle, circle, "Sunny."]);
    const { toolMode: _mode, tools: _tools, ...asked } = request();
    const events: ChatEvent[] = [];
    for await (const event of runToolLoop(chat, asked, [tool])) events.push(event as ChatEvent);
    const round = ["Rome", "Oslo", "Rome", "Oslo"];
    expect(ran).toEqual([...round, ...round]);
    expect(events.at(-1)).toMatchObject({ reason: "stop", warnings: [notice] });
    expect(events).toContainEqual({ type: "content", text: "Sun" });
  });

  it("do not run where the token limit left no room for an answer", async () => {
    const { chat } = setUp([{ text: circle, end: "length", isAhead: true }]);
    const { finish, events } = await run(chat, request());
    expect(finish).toMatchObject({ reason: "length", calls: [], warnings: [notice] });
    expect(events.some(({ type }) => type === "hold")).toBe(false);
  });

  it("end with the hold where the request is cancelled", async () => {
    const { chat, engine } = setUp([circle]);
    const generation = chat.generate(request());
    const types: string[] = [];
    for await (const event of generation) {
      types.push(event.type === "finish" ? event.reason : event.type);
      if (event.type === "hold") generation.cancel();
    }
    expect(types.slice(-2)).toEqual(["hold", "cancelled"]);
    expect(engine.last.cancelled).toBe(true);
  });
});
