/** A round that makes the same calls over and over, on each wire, streamed or not, and whoever runs the calls. */

import { describe, expect, test } from "vitest";
import { defineTool } from "../../src/tools/tool-builder.ts";
import { agentDirectory } from "../support/agents.ts";
import { callText } from "../unit/chat/chat-fixtures.ts";
import { engineWorld } from "./engine-world.ts";
import type { Json } from "./responses-world.ts";

const notice = "A round of tool calls was stopped where the same call came for the third time.";
const circle = (callText("Rome") + callText("Oslo")).repeat(4);
const four = ["Rome", "Oslo", "Rome", "Oslo"];
const parameters = { type: "object", properties: { city: { type: "string" } } };
const weather = { name: "get_weather", parameters };
const chatTool = { type: "function", function: weather };
const messages = [{ role: "user", content: "Weather?" }];

/** What a wire's answer says of its calls. */
interface Told {
  cities: string[];
  ended: unknown;
  warnings: unknown;
}

const cityOf = (text: string): string => JSON.parse(text).city;
const dataOf = (body: string): Json[] =>
  [...body.matchAll(/^data: (\{.*)$/gm)].map(([, data]) => JSON.parse(data!));

interface Wire {
  url: string;
  body: object;
  ended: unknown;
  /** Of an answer that is not streamed. */
  read(body: Json): Told;
  /** Of the events of a stream. */
  readEvents(events: Json[]): Told;
}

function ofResponse({ output, status, warnings }: Json): Told {
  const calls = output.filter(({ type }: Json) => type === "function_call");
  return {
    cities: calls.map((item: Json) => cityOf(item.arguments)),
    ended: [status, ...calls.map((item: Json) => item.status)],
    warnings,
  };
}

const wires: Wire[] = [
  {
    url: "/v1/chat/completions",
    body: { messages, tools: [chatTool] },
    ended: "tool_calls",
    read: ({ choices: [{ message, finish_reason: ended }] }) => ({
      cities: message.tool_calls.map((call: Json) => cityOf(call.function.arguments)),
      ended,
      warnings: message.warnings,
    }),
    readEvents: (events) => {
      const choices = events.flatMap(({ choices: all }) => all);
      const texts: string[] = [];
      for (const { index, function: piece } of choices.flatMap(
        ({ delta }) => delta.tool_calls ?? [],
      ))
        texts[index] = (texts[index] ?? "") + (piece.arguments ?? "");
      return {
        cities: texts.map(cityOf),
        ended: choices.at(-1).finish_reason,
        warnings: choices.at(-1).delta.warnings,
      };
    },
  },
  {
    url: "/v1/messages",
    body: {
      messages,
      max_tokens: 9999,
      tools: [{ name: "get_weather", input_schema: parameters }],
    },
    ended: "tool_use",
    read: ({ content, stop_reason: ended, warnings }) => ({
      cities: content.map((block: Json) => block.input.city),
      ended,
      warnings,
    }),
    readEvents: (events) => {
      const texts: string[] = [];
      for (const { type, index, delta } of events)
        if (type === "content_block_delta")
          texts[index] = (texts[index] ?? "") + delta.partial_json;
      const { delta } = events.find(({ type }) => type === "message_delta");
      return { cities: texts.map(cityOf), ended: delta.stop_reason, warnings: delta.warnings };
    },
  },
  {
    url: "/v1/responses",
    body: { input: "Weather?", tools: [{ type: "function", ...weather }] },
    ended: ["completed", ...four.map(() => "completed")],
    read: ofResponse,
    readEvents: (events) => {
      const begun = events.filter(({ type }) => type === "response.output_item.added");
      expect(begun).toHaveLength(4);
      return ofResponse(events.at(-1).response);
    },
  },
  {
    url: "/api/chat",
    body: { messages, tools: [chatTool], stream: false },
    ended: "stop",
    read: ({ message, done_reason: ended, warnings }) => ({
      cities: message.tool_calls.map((call: Json) => call.function.arguments.city),
      ended,
      warnings,
    }),
    readEvents: (lines) => ({
      cities: lines.flatMap(({ message }) =>
        (message.tool_calls ?? []).map((call: Json) => call.function.arguments.city),
      ),
      ended: lines.at(-1).done_reason,
      warnings: lines.at(-1).warnings,
    }),
  },
];

describe.each(wires)("$url, calls of the client", ({ url, body, ended, read, readEvents }) => {
  test.each([false, true])("streamed: %s", async (stream) => {
    const { app, engine, lines } = engineWorld([circle]);
    const reply = await app.inject({ method: "POST", url, payload: { ...body, stream } });
    expect(reply.statusCode).toBe(200);
    const isLines = url.startsWith("/api/");
    const events = isLines
      ? reply.body
          .trim()
          .split("\n")
          .map((line): Json => JSON.parse(line))
      : dataOf(reply.body);
    const told = stream ? readEvents(events) : read(reply.json());
    expect(told).toEqual({ cities: four, ended, warnings: [notice] });
    expect(engine.last.released).toBe(true);
    const problems = lines.filter(({ level }) => Number(level) >= 40).map(({ msg }) => msg);
    expect(problems).toEqual([
      "the same call comes for the third time in a round: the round is stopped",
    ]);
  });
});

function countedTool() {
  const ran: unknown[] = [];
  const tool = defineTool("get_weather", "")
    .param("city", "string", "City", true)
    .run(({ city }) => {
      ran.push(city);
      return `sun in ${String(city)}`;
    });
  return { tool, ran };
}

describe("calls that the server runs", () => {
  test("run twice at most, and the answer goes on", async () => {
    const { tool, ran } = countedTool();
    const { app, engine } = engineWorld([circle, "Sunny."], [tool]);
    const url = "/v1/chat/completions";
    const reply = await app.inject({ method: "POST", url, payload: { messages } });
    expect(ran).toEqual(four);
    const [choice] = reply.json<Json>().choices;
    expect(choice).toMatchObject({
      finish_reason: "stop",
      message: { content: "Sunny.", warnings: [notice] },
    });
    const prompt = engine.spell(engine.last.request.prompt);
    expect(prompt.split("<tool_response>")).toHaveLength(1 + 4);
    expect(prompt.split('{"city": "Rome"}')).toHaveLength(1 + 2);
  });

  test("an agent's, too", async () => {
    const { tool, ran } = countedTool();
    const boss = { description: "Answers.", instructions: "Answer.", tools: { function: "*" } };
    const json = { supervisor: "boss", agents: { boss } };
    const { app } = engineWorld([circle, "Sunny."], [tool], (chat) =>
      agentDirectory(json, chat, { tools: () => [tool], contextSize: 100_000 }),
    );
    const payload = { model: "boss", input: "Weather?" };
    const reply = await app.inject({ method: "POST", url: "/v1/responses", payload });
    expect(ran).toEqual(four);
    expect(reply.json()).toMatchObject({ status: "completed", warnings: [notice] });
    expect(reply.body).toContain("Sunny.");
  });
});
