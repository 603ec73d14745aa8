/** A prompt that does not fit the context: a status, or events of a stream. */

import { afterEach, beforeEach, expect, test } from "vitest";
import { FermataError } from "../../src/errors.ts";
import { createResponsesWorld, type Json, type ResponsesWorld } from "./responses-world.ts";

let world: ResponsesWorld;

const told = {
  code: "context_length_exceeded",
  message: expect.stringMatching(/^Too long/),
};

beforeEach(async () => {
  world = await createResponsesWorld();
  const tooLong = new FermataError("context_length_exceeded", "Too long.", { param: "messages" });
  world.chat.script = [{ fail: tooLong }];
});

afterEach(() => world.close());

test("without a stream it is a 400 that names the input", async () => {
  const { status, body } = await world.create({ input: "Hi" });
  expect(status).toBe(400);
  expect(body.error).toMatchObject({ ...told, param: "input" });
});

test("a stream tells it in its events: codex compacts its history on the last one alone", async () => {
  const events = await world.streamed({ input: "Hi" });
  expect(events).toMatchObject([
    { type: "response.created" },
    { type: "response.in_progress" },
    { type: "error", ...told, param: "input", error: { type: "invalid_request_error", ...told } },
    { type: "response.failed", response: { status: "failed", error: told, output: [] } },
  ]);
  expect(events.map(({ sequence_number: number }) => number)).toEqual([0, 1, 2, 3]);
  const { id } = events[0]!["response"] as Json;
  const { body } = await world.call("GET", `/v1/responses/${id}`);
  expect(body).toMatchObject({ status: "failed", error: told });
  const { body: input } = await world.call("GET", `/v1/responses/${id}/input_items`);
  expect(input.data).toEqual([]);
});

test("after the first words of a stream, its last event says so", async () => {
  world.chat.script = [{ type: "content", text: "Hel" }, ...world.chat.script];
  const events = await world.streamed({ input: "Hi" });
  expect(events.at(-1)).toMatchObject({ type: "response.failed", response: { error: told } });
});
