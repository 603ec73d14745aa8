/** POST /infill, and `suffix` of /v1/completions: a gap between two texts. */

import { expect, test } from "vitest";
import { createWorld, type World } from "./fake-services.ts";

/** Of a model with Qwen's tokens for gaps; its context has 1,000 tokens. */
const [prefix, suffix, middle, file, repository] = [1000, 1001, 1002, 1003, 1004];

function post(world: World, url: string, body: object) {
  return world.app.inject({ method: "POST", url, payload: body });
}

/** The prompt that the engine got: marks by number, the rest as text. */
function promptOf({ text: { requests } }: World): (number | string)[] {
  const parts: (number | string)[] = [];
  for (const token of requests.at(-1)!.prompt) {
    const last = parts.at(-1);
    if (token >= prefix) parts.push(token);
    else if (typeof last === "string") parts[parts.length - 1] = last + String.fromCharCode(token);
    else parts.push(String.fromCharCode(token));
  }
  return parts;
}

test("the texts stand around the gap, and the answer has llama-server's form", async () => {
  const world = createWorld();
  const response = await post(world, "/infill", { input_prefix: "a(", input_suffix: ")b" });
  expect(response.json()).toMatchObject({ content: "yes", stop: true, tokens_evaluated: 7 });
  expect(promptOf(world)).toEqual([prefix, "a(", suffix, ")b", middle]);
});

test("other files come first, and the answer's beginning last", async () => {
  const world = createWorld();
  const input_extra = [{ filename: "x.py", text: "one" }, { text: "two" }];
  const body = { input_prefix: "a", input_suffix: "b", input_extra, prompt: "begun" };
  await post(world, "/infill", body);
  const files = [repository, "project\n", file, "x.py\none", file, "tmp\ntwo", file, "file\n"];
  expect(promptOf(world)).toEqual([...files, prefix, "a", suffix, "b", middle, "begun"]);
});

test("of long texts what is next to the gap is kept, and of files those that fit", async () => {
  const world = createWorld();
  const [before, behind] = [`${"x".repeat(900)}!`, `?${"y".repeat(900)}`];
  const input_extra = [{ filename: "big", text: "z".repeat(400) }];
  const body = { input_prefix: before, input_suffix: behind, input_extra, n_predict: 97 };
  await post(world, "/infill", body);
  // Of 903 tokens three are marks; a quarter of the rest is the text behind the gap.
  const kept = [`${"x".repeat(674)}!`, `?${"y".repeat(224)}`];
  expect(promptOf(world)).toEqual([prefix, kept[0], suffix, kept[1], middle]);
  await post(world, "/infill", { ...body, input_suffix: "?" });
  expect(promptOf(world)).toEqual([prefix, `${"x".repeat(898)}!`, suffix, "?", middle]);
  await post(world, "/infill", { ...body, input_prefix: "!", input_suffix: "?" });
  const big = `big\n${"z".repeat(400)}`;
  expect(promptOf(world).slice(0, 4)).toEqual([repository, "project\n", file, big]);
});

test("a completion with a suffix fills the gap behind its prompt", async () => {
  const world = createWorld();
  const response = await post(world, "/v1/completions", { prompt: "a", suffix: "b" });
  expect(response.json()).toMatchObject({ choices: [{ text: "yes" }] });
  expect(promptOf(world)).toEqual([prefix, "a", suffix, "b", middle]);
  const tokens = await post(world, "/v1/completions", { prompt: [97], suffix: "b" });
  expect(tokens.json()).toMatchObject({ error: { param: "suffix", code: "unsupported_value" } });
});

test("a model without these tokens is told of", async () => {
  for (const [url, body] of [
    ["/infill", { input_prefix: "a", input_suffix: "b" }],
    ["/v1/completions", { prompt: "a", suffix: "b" }],
  ] as const) {
    const world = createWorld();
    world.text.specials.clear();
    const response = await post(world, url, body);
    expect(response.statusCode).toBe(400);
    const { message } = response.json<{ error: { message: string } }>().error;
    expect(message).toContain("not trained to fill in the middle");
  }
});

test.each([
  [{ input_prefix: "a" }, "input_suffix"],
  [{ input_suffix: "b" }, "input_prefix"],
  [{ input_prefix: "a", input_suffix: "b", input_extra: "c" }, "input_extra"],
  [{ input_prefix: "a", input_suffix: "b", input_extra: [{}] }, "input_extra[0].text"],
  [{ input_prefix: "a", input_suffix: "b", input_extra: [{ text: 1 }] }, "input_extra[0].text"],
])("%j is refused for %s", async (body, param) => {
  const response = await post(createWorld(), "/infill", body);
  expect(response.statusCode).toBe(400);
  expect(response.json()).toMatchObject({ error: { param } });
});
