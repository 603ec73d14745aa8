/** What the log says of a request, and what it must never say. */

import { pino } from "pino";
import { expect, test } from "vitest";
import {
  callEvents,
  createWorld,
  fakeTool,
  finish,
  post,
  provider,
  type World,
} from "./fake-services.ts";
import { usage } from "./fake-figures.ts";

const secret = "hunter2";
const call = { id: "call_1", name: "list_files", arguments: `{"path":"${secret}"}` };
const body = { messages: [{ role: "user", content: secret }], user: secret, model: "other" };

function loggedWorld(tools?: Parameters<typeof provider>[0][]): {
  world: World;
  lines: Record<string, unknown>[];
} {
  const lines: Record<string, unknown>[] = [];
  const write = (line: string): void => void lines.push(JSON.parse(line));
  const logger = pino({ level: "trace" }, { write });
  const parts = tools === undefined ? {} : { tools: provider(...tools) };
  return { world: createWorld({ ...parts, config: { logger } }), lines };
}

test("internal mode: each call, then the answer; no contents", async () => {
  const { world, lines } = loggedWorld([
    fakeTool("list_files", { content: secret, isError: false }),
  ]);
  world.chat.script = [
    ...callEvents(call),
    { type: "hold", calls: [call], usage },
    { type: "content", text: secret },
    finish("stop"),
  ];
  await post(world.app, body);
  expect(lines).toContainEqual(
    expect.objectContaining({
      level: 30,
      server: "files",
      tool: "list_files",
      outcome: "ok",
      milliseconds: expect.any(Number),
    }),
  );
  expect(lines).toContainEqual(
    expect.objectContaining({
      mode: "internal",
      finish_reason: "stop",
      has_tool_calls: true,
      tool_calls: 1,
    }),
  );
  expect(JSON.stringify(lines)).not.toContain(secret);
});

test("external mode", async () => {
  const { world, lines } = loggedWorld();
  world.chat.script = [...callEvents(call), finish("tool_calls", [call])];
  const tools = [{ type: "function", function: { name: "list_files" } }];
  await post(world.app, { ...body, tools });
  expect(lines).toContainEqual(
    expect.objectContaining({ mode: "external", finish_reason: "tool_calls", tool_calls: 1 }),
  );
  expect(JSON.stringify(lines)).not.toContain(secret);
});

test("a field without effect and an unknown model are warned about once", async () => {
  const { world, lines } = loggedWorld();
  await post(world.app, body);
  await post(world.app, body);
  const warnings = lines.filter(({ level }) => level === 40).map(({ field }) => field);
  expect(warnings).toEqual(["model=other", "user"]);
});

test("an unknown fault is logged with its stack", async () => {
  const { world, lines } = loggedWorld();
  world.chat.script = [{ fail: new TypeError("broken") }];
  await post(world.app, body);
  expect(lines).toContainEqual(
    expect.objectContaining({
      level: 50,
      err: expect.objectContaining({ message: "broken", stack: expect.any(String) }),
    }),
  );
});
