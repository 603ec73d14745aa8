/** A tool loop over a scripted model, and what it said. */

import type { ChatEvent, ChatRequest } from "../../../src/chat/types.ts";
import { defineTool } from "../../../src/tools/tool-builder.ts";
import { type ToolLoopOptions, runToolLoop } from "../../../src/tools/tool-loop.ts";
import type { Tool, ToolEvent } from "../../../src/tools/types.ts";
import { request, resultText, setUp } from "../chat/chat-fixtures.ts";

export const sleep = (ms: number): Promise<void> =>
  new Promise((resolve) => setTimeout(resolve, ms));

export const lastWords =
  "No more tools can be called. Answer my question now, in words, with what the results above say.\n\nMy question was: Weather?";
export const repeatWords =
  "The same call gave the same result again. Do something else, or answer my question in words with what the results above say.\n\nMy question was: Weather?";

/** Results, and what the user says behind them. */
export function resultsAndWords(words: string, ...contents: string[]): string {
  const said = `⟪<|im_start|>⟫user\n${words}⟪<|im_end|>⟫\n⟪<|im_start|>⟫assistant\n`;
  return resultText(...contents).replace("⟪<|im_start|>⟫assistant\n", said);
}

export const weather = defineTool("get_weather", "Weather")
  .param("city", "string", "City", true)
  .run(({ city }) => `sun in ${String(city)}`);

export async function loop(
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
