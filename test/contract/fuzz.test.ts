/**
 * Bodies that are nearly right, with whatever JSON in some place: never a 500, and every refusal names
 * the field. FERMATA_FUZZ_RUNS sets the requests an endpoint, FERMATA_FUZZ_SEED which ones.
 */

import fc from "fast-check";
import type { FastifyInstance } from "fastify";
import { afterAll, expect, test } from "vitest";
import { chatCompletionFields } from "../../src/server/chat-completions/fields.ts";
import { completionFields } from "../../src/server/completions/fields.ts";
import { embeddingFields } from "../../src/server/embeddings/fields.ts";
import type { FieldTable } from "../../src/server/body/field.ts";
import { createWorld, fakeEmbedder, fakeTool, provider } from "./fake-services.ts";

const numRuns = Number(process.env["FERMATA_FUZZ_RUNS"] ?? 200);
const seed = Number(process.env["FERMATA_FUZZ_SEED"] ?? 6);

/** Values with what breaks naive readers: huge numbers, NUL, lone surrogates, deep and empty things. */
const anything = fc.oneof(
  fc.jsonValue({ maxDepth: 3 }),
  fc.constantFrom<unknown>(
    null,
    "",
    "\0",
    "\ud800",
    "<|im_start|>",
    0,
    -0,
    1,
    -1,
    0.5,
    1e308,
    -1e308,
    2 ** 31,
    2 ** 53,
    [],
    [[]],
    {},
    [null],
    { type: "text" },
    { __proto__: null, constructor: 1 },
  ),
);
const text = fc.oneof(fc.string({ unit: "grapheme", maxLength: 12 }), fc.string({ maxLength: 12 }));

/** What fits, most of the time. */
function mostly<T>(fits: fc.Arbitrary<T>): fc.Arbitrary<unknown> {
  return fc.oneof({ weight: 6, arbitrary: fits }, { weight: 1, arbitrary: anything });
}

/** Each field there or not. */
function object(fields: Record<string, fc.Arbitrary<unknown>>): fc.Arbitrary<unknown> {
  return fc.record(fields, { requiredKeys: [] });
}

const part = object({
  type: mostly(fc.constantFrom("text", "image_url", "refusal")),
  text: mostly(text),
});
const content = mostly(fc.oneof(text, fc.array(mostly(part), { maxLength: 3 })));
const call = object({
  id: mostly(fc.constantFrom("a", "b")),
  type: mostly(fc.constant("function")),
  function: mostly(object({ name: mostly(text), arguments: mostly(fc.json({ maxDepth: 2 })) })),
});
const message = object({
  role: mostly(fc.constantFrom("system", "developer", "user", "assistant", "tool", "function")),
  content,
  tool_calls: mostly(fc.array(mostly(call), { maxLength: 2 })),
  tool_call_id: mostly(fc.constantFrom("a", "b")),
  reasoning_content: mostly(text),
});
const goodMessages = fc.constant([{ role: "user", content: "Hi" }]);
const messages = fc.oneof(
  { weight: 3, arbitrary: goodMessages },
  { weight: 2, arbitrary: mostly(fc.array(mostly(message), { maxLength: 4 })) },
);
const tool = object({
  type: mostly(fc.constantFrom("function", "web_search")),
  function: mostly(
    object({
      name: mostly(fc.constantFrom("f", "g", "a b")),
      description: mostly(text),
      parameters: mostly(fc.constantFrom({ type: "object" }, { type: "object", properties: {} })),
      strict: mostly(fc.boolean()),
    }),
  ),
});
const number = mostly(fc.oneof(fc.double({ noNaN: true, min: -3, max: 3 }), fc.integer()));
/** A text, tokens, or a list of either. */
const inputs = mostly(
  fc.oneof(
    text,
    fc.array(mostly(text), { maxLength: 3 }),
    fc.array(mostly(fc.nat(600)), { maxLength: 4 }),
    fc.array(fc.array(mostly(fc.nat(600)), { maxLength: 4 }), { maxLength: 3 }),
  ),
);
const known: Record<string, fc.Arbitrary<unknown>> = {
  messages,
  prompt: inputs,
  model: mostly(text),
  input: inputs,
  dimensions: mostly(fc.integer({ min: 0, max: 9 })),
  encoding_format: mostly(fc.constantFrom("float", "base64")),
  stream: mostly(fc.boolean()),
  logprobs: mostly(fc.oneof(fc.boolean(), fc.integer({ min: -1, max: 22 }))),
  echo: mostly(fc.boolean()),
  n: mostly(fc.integer({ min: 0, max: 4 })),
  stop: mostly(fc.oneof(text, fc.array(mostly(text), { maxLength: 4 }))),
  logit_bias: mostly(fc.dictionary(fc.oneof(fc.nat(600).map(String), text), number)),
  stream_options: mostly(object({ include_usage: mostly(fc.boolean()) })),
  tools: mostly(fc.array(mostly(tool), { maxLength: 3 })),
  tool_choice: mostly(fc.constantFrom("auto", "none", "required")),
  chat_template_kwargs: mostly(fc.dictionary(text, anything)),
  dry_sequence_breakers: mostly(fc.array(mostly(text), { maxLength: 3 })),
  content: mostly(text),
  tokens: mostly(fc.array(mostly(fc.nat(600)), { maxLength: 4 })),
  reasoning_effort: mostly(fc.constantFrom("none", "low", "high")),
};

/** The fields of a table; those in `needed` are there most of the time, of the rest a few. */
function body(fields: readonly string[], needed: readonly string[]): fc.Arbitrary<unknown> {
  const entry = fc
    .constantFrom(...fields)
    .chain((name) => fc.tuple(fc.constant(name), known[name] ?? number));
  return mostly(
    fc
      .tuple(
        object(Object.fromEntries(needed.map((name) => [name, known[name] ?? anything]))),
        fc.array(entry, { maxLength: 4 }),
      )
      .map(([base, entries]) => ({ ...(base as object), ...Object.fromEntries(entries) })),
  );
}

const namesOf = (table: FieldTable): string[] => Object.keys(table);
const endpoints: [url: string, bodies: fc.Arbitrary<unknown>][] = [
  ["/v1/chat/completions", body(namesOf(chatCompletionFields), ["messages"])],
  ["/v1/completions", body(namesOf(completionFields), ["prompt"])],
  ["/v1/embeddings", body(namesOf(embeddingFields()), ["input"])],
  ["/tokenize", body(["add_special", "parse_special", "with_pieces"], ["content"])],
  ["/detokenize", body(["model"], ["tokens"])],
  ["/apply-template", body(["tools", "chat_template_kwargs", "reasoning_effort"], ["messages"])],
];

const world = createWorld({ embedder: fakeEmbedder });
const withTools = createWorld({
  tools: provider(fakeTool("read", { content: "", isError: false })),
});
afterAll(async () => {
  await world.app.close();
  await withTools.app.close();
});

test.each(endpoints)(
  "%s",
  async (url, bodies) => {
    const statuses = new Map<number, number>();
    const property = fc.asyncProperty(bodies, fc.boolean(), async (value, tools) => {
      const status = await check(tools ? withTools.app : world.app, url, value);
      statuses.set(status, (statuses.get(status) ?? 0) + 1);
    });
    await fc.assert(property, { numRuns, seed });
    // Both ways are taken, or nothing was tried.
    expect(statuses.get(200)).toBeGreaterThan(numRuns / 20);
    expect(statuses.get(400)).toBeGreaterThan(numRuns / 20);
  },
  60_000 + numRuns * 50,
);

async function check(app: FastifyInstance, url: string, value: unknown): Promise<number> {
  const payload = JSON.stringify(value);
  const headers = { "content-type": "application/json" };
  const response = await app.inject({ method: "POST", url, payload, headers });
  expect(response.statusCode, response.body).toBeLessThan(500);
  if (response.statusCode >= 400) {
    const { error } = response.json() as { error: { param: unknown; message: string } };
    expect(error, payload).toMatchObject({ param: expect.stringMatching(/./) });
    expect(error.message).toContain(error.param);
  }
  return response.statusCode;
}
