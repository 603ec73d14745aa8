/** A chat over the fake engine with a ChatML template, and what the chat tests ask of it. */

import { readFileSync } from "node:fs";
import { join } from "node:path";

import { Chat } from "../../../src/chat/chat.ts";
import { greedy } from "../../support/sampling.ts";
import type {
  ChatEvent,
  ChatMessage,
  ChatRequest,
  ToolDefinition,
  ToolLogger,
} from "../../../src/chat/types.ts";

import { FakeEngine, type FakeEngineOptions } from "./fake-engine.ts";

export const chatml = readFileSync(
  join(import.meta.dirname, "../../fixtures/chat/chatml.jinja"),
  "utf8",
);

export const weather: ToolDefinition = {
  name: "get_weather",
  parameters: { type: "object", properties: {} },
};
export const user: ChatMessage = { role: "user", content: "Weather?" };

export function callText(city: string, name = "get_weather"): string {
  return `<tool_call>\n{"name":"${name}","arguments":{"city":"${city}"}}\n</tool_call>`;
}

export function resultText(...contents: string[]): string {
  const responses = contents
    .map((content) => `\n<tool_response>\n${content}\n</tool_response>`)
    .join("");
  return `\n⟪<|im_start|>⟫user${responses}⟪<|im_end|>⟫\n⟪<|im_start|>⟫assistant\n`;
}

export function setUp(
  rounds: FakeEngineOptions["rounds"],
  options: Partial<FakeEngineOptions> = {},
) {
  const engine = new FakeEngine({ template: chatml, ...options, rounds: rounds ?? [] });
  const warnings: string[] = [];
  const logger: ToolLogger = {
    info: () => {},
    warn: (_details, message) => warnings.push(message),
    error: (_details, message) => warnings.push(message),
  };
  return { engine, chat: new Chat(engine, { logger }), logger, warnings };
}

export function request(partial: Partial<ChatRequest> = {}): ChatRequest {
  return {
    messages: [user],
    tools: [weather],
    toolMode: "internal",
    sampling: greedy,
    stop: [],
    owner: "me",
    ...partial,
  };
}

export interface Run {
  events: ChatEvent[];
  content: string;
  finish: Extract<ChatEvent, { type: "finish" }>;
}

/** Runs to the end; holds are answered with `answers`, one list of results a round. */
export async function run(
  chat: Chat,
  chatRequest: ChatRequest,
  answers: string[][] = [],
): Promise<Run> {
  const generation = chat.generate(chatRequest);
  const events: ChatEvent[] = [];
  for await (const event of generation) {
    events.push(event);
    if (event.type !== "hold") continue;
    const contents = answers.shift() ?? [];
    await generation.resume(
      event.calls.map((call, index) => ({
        callId: call.id,
        name: call.name,
        content: contents[index] ?? "",
      })),
    );
  }
  const finish = events.at(-1);
  if (finish?.type !== "finish") return await Promise.reject(new TypeError("no finish event"));
  const content = events.map((event) => (event.type === "content" ? event.text : "")).join("");
  return { events, content, finish };
}
