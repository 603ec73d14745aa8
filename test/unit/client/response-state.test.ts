// Against openai's own accumulator: the same events, the same output.
import { accumulateResponse as accumulateAsOpenAi } from "openai/lib/responses/ResponseAccumulator";
import type { Response, ResponseStreamEvent } from "openai/resources/responses/responses";
import { expect, test } from "vitest";
import {
  accumulateResponse,
  type ResponseEvent,
  type ResponseState,
  textOfResponse,
} from "../../../src/client/response-state.ts";
import { callEvents, finish, type ScriptStep } from "../../contract/fake-services.ts";
import { createResponsesWorld } from "../../contract/responses-world.ts";

const call = { id: "c1", name: "get_weather", arguments: '{"place":"Tokyo"}' };
const patch = { id: "c3", name: "patch", arguments: '{"input":"*** Begin"}' };
const scripts: [string, ScriptStep[]][] = [
  [
    "text after reasoning",
    [
      { type: "reasoning", text: "I " },
      { type: "reasoning", text: "think" },
      { type: "content", text: "Hel" },
      { type: "content", text: "lo." },
      finish("stop"),
    ],
  ],
  [
    "text and two calls",
    [
      { type: "content", text: "Looking." },
      ...callEvents(call, 0),
      ...callEvents({ ...call, id: "c2" }, 1),
      finish("tool_calls", [call, { ...call, id: "c2" }]),
    ],
  ],
  ["a call of a custom tool", [...callEvents(patch, 0), finish("tool_calls", [patch])]],
  ["a cut call", [...callEvents(call).slice(0, 2), finish("length")]],
  ["a failure", [{ type: "content", text: "He" }, { fail: new TypeError("x") }]],
];

test.each(scripts)("%s", async (_name, script) => {
  const world = await createResponsesWorld();
  world.chat.script = script;
  const tools = [
    { type: "function", name: "get_weather", parameters: { type: "object" } },
    { type: "custom", name: "patch" },
  ];
  const events = await world.streamed({ input: "Hi", tools });
  await world.close();
  let theirs: Response | undefined;
  let ours: ResponseState | null = null;
  for (const event of events) {
    const before = structuredClone(ours);
    const previous: ResponseState | null = ours;
    theirs = accumulateAsOpenAi(event as unknown as ResponseStreamEvent, theirs);
    ours = accumulateResponse(ours, event as ResponseEvent);
    expect(ours!.output).toEqual(theirs.output);
    // A state never changes under its holder.
    expect(previous).toEqual(before);
  }
  expect(textOfResponse(ours!)).toBe(theirs!.output_text);
  expect(ours!.status).toBe(theirs!.status);
});
