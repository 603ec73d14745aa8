/** A conversation over Ollama's /api/generate: the tokens of one answer are the `context` of the next request. */

import { expect, test } from "vitest";
import { createWorld, fakeTool, finish, provider, type World } from "./fake-services.ts";

const asked = { model: "tiny", prompt: "Why?", stream: false };

function post({ app }: World, body: object) {
  return app.inject({ method: "POST", url: "/api/generate", payload: body });
}

function answering(world = createWorld()): World {
  world.chat.script = [
    { type: "content", text: "Ye" },
    { tokens: [8] },
    { type: "content", text: "s." },
    { tokens: [9, 2] },
    finish("stop"),
  ];
  return world;
}

test("an answer tells the tokens of prompt and answer", async () => {
  const whole = await post(answering(), asked);
  expect(whole.json()).toMatchObject({ response: "Yes.", context: [5, 6, 7, 8, 9, 2] });
  const streamed = await post(answering(), { ...asked, stream: true });
  const lines = streamed.body.trimEnd().split("\n");
  expect(lines.slice(0, -1).join("")).not.toContain("context");
  expect(JSON.parse(lines.at(-1)!)).toMatchObject({ done: true, context: [5, 6, 7, 8, 9, 2] });
});

test("they come before the prompt of the next request", async () => {
  const world = answering();
  const response = await post(world, { ...asked, context: [5, 6, 7, 8, 9, 2] });
  expect(response.statusCode).toBe(200);
  expect(world.chat.requests[0]).toMatchObject({
    messages: [{ role: "user", content: "Why?" }],
    leadingTokens: Int32Array.of(5, 6, 7, 8, 9, 2),
  });
});

test("where the server runs tools, an answer tells none, and a request with them has no tools", async () => {
  const tools = provider(fakeTool("read", { content: "12", isError: false }));
  const world = answering(createWorld({ tools }));
  expect((await post(world, asked)).json()).not.toHaveProperty("context");
  expect(world.chat.requests[0]?.toolMode).toBe("internal");
  const next = await post(world, { ...asked, context: [1] });
  expect(next.json().context).toEqual([5, 6, 7, 8, 9, 2]);
  expect(world.chat.requests[1]?.toolMode).toBe("none");
});

test.each([
  [{ context: [-1] }, "context[0]"],
  [{ context: "said" }, "context"],
  [{ context: [1], raw: true }, "context"],
])("%j is a 400", async (fields, param) => {
  const response = await post(createWorld(), { ...asked, ...fields });
  expect(response.statusCode).toBe(400);
  expect(response.json()).toMatchObject({ param });
});

test("with a limit of 0 it is the prompt", async () => {
  const response = await post(answering(), { ...asked, options: { num_predict: 0 } });
  expect(response.json()).toMatchObject({ response: "", context: [5, 6, 7] });
});

test("an empty one is none, and a raw answer tells none", async () => {
  const world = createWorld();
  const response = await post(world, { ...asked, context: [], raw: true });
  expect(response.statusCode).toBe(200);
  expect(response.json()).not.toHaveProperty("context");
});

test("a suffix asks for what stands between it and the prompt", async () => {
  const world = createWorld();
  const response = await post(world, { ...asked, prompt: "a", suffix: "b" });
  expect(response.json()).toMatchObject({ response: "yes", done_reason: "stop" });
  expect(response.json()).not.toHaveProperty("context");
  const [prefix, suffix, middle] = [1000, 1001, 1002];
  expect([...world.text.requests[0]!.prompt]).toEqual([prefix, 97, suffix, 98, middle]);
  const streamed = await post(world, { ...asked, prompt: "a", suffix: "b", stream: true });
  const lines = streamed.body.trimEnd().split("\n");
  expect(lines.map((line) => JSON.parse(line).response).join("")).toBe("yes");
  const other = createWorld();
  other.text.specials.clear();
  const untrained = await post(other, { ...asked, suffix: "b" });
  expect(untrained.statusCode).toBe(400);
  expect(untrained.json()).toMatchObject({ param: "model" });
});

test.each([
  [{ raw: true }, "suffix"],
  [{ system: "Be brief." }, "system"],
  [{ context: [1] }, "context"],
])("beside a suffix %j is a 400", async (fields, param) => {
  const response = await post(createWorld(), { ...asked, suffix: "b", ...fields });
  expect(response.statusCode).toBe(400);
  expect(response.json()).toMatchObject({ param });
});

test("to find the model takes a moment, which is part of the whole", async () => {
  const { load_duration: load, total_duration: total } = (await post(answering(), asked)).json();
  expect(load).toBeGreaterThan(0);
  expect(total).toBeGreaterThan(load);
});
