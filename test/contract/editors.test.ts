/** Requests of editors' plugins for llama-server, with the fields that llama.vim and llama.vscode send. */

import { expect, test, vi } from "vitest";
import { createWorld, sseEvents, type World } from "./fake-services.ts";

function post(world: World, url: string, body: object) {
  return world.app.inject({ method: "POST", url, payload: body });
}

const gap = { input_prefix: "def f():\n", input_suffix: "\n\nf()\n", prompt: "    " };
const file = { text: "x = 1\n", time: [0, 12], filename: "x.py" };
const sampling = {
  top_k: 40,
  top_p: 0.99,
  stream: false,
  samplers: ["top_k", "top_p", "infill"],
  cache_prompt: true,
};
const times = { t_max_prompt_ms: 500, t_max_predict_ms: 500 };

test("llama.vim's completion: the fields that it reads are in the answer", async () => {
  const names = ["prompt_n", "prompt_ms", "prompt_per_second", "predicted_n", "predicted_ms"];
  const response_fields = ["content", ...names.map((name) => `timings/${name}`), "truncated"];
  const response = await post(createWorld(), "/infill", {
    ...gap,
    input_extra: [file],
    n_predict: 128,
    n_indent: 4,
    ...sampling,
    ...times,
    response_fields,
  });
  expect(response.statusCode).toBe(200);
  expect(response.json()).toMatchObject({ content: "yes", truncated: false });
  expect(Object.keys(response.json())).toEqual(response_fields);
});

test("llama.vscode's completion", async () => {
  const body = { ...gap, input_extra: [file], n_predict: 128, n_indent: 4, ...sampling, ...times };
  const response = await post(createWorld(), "/infill", body);
  expect(response.json()).toMatchObject({ content: "yes" });
});

test("requests that warm the cache up answer nothing", async () => {
  const warmUp = { n_predict: 0, samplers: [], cache_prompt: true, t_max_predict_ms: 1 };
  const nothing = { input_prefix: "", input_suffix: "", input_extra: [file], prompt: "" };
  const vim = { ...nothing, ...warmUp, temperature: 0, t_max_prompt_ms: 1, response_fields: [""] };
  const infilled = await post(createWorld(), "/infill", vim);
  expect(infilled.json()).toEqual({});
  const messages = [
    { role: "system", content: "You are an expert coder." },
    { role: "user", content: "x = 1" },
  ];
  const chat = { messages, ...warmUp, t_max_prompt_ms: 500 };
  const chatted = await post(createWorld(), "/v1/chat/completions", chat);
  expect(chatted.json()).toMatchObject({ choices: [{ message: { content: "" } }] });
});

/** What the texts of the model become with these fields, whole and streamed. */
async function filled(says: string, fields: object): Promise<object> {
  const world = createWorld();
  world.text.says = says;
  const whole = (await post(world, "/infill", { ...gap, ...fields })).json();
  const streamed = await post(world, "/infill", { ...gap, ...fields, stream: true });
  const events = sseEvents(streamed.body) as { content: string; stop_type?: string }[];
  expect(events.map(({ content }) => content).join("")).toBe(whole.content);
  expect(events.at(-1)?.stop_type).toBe(whole.stop_type);
  return { content: whole.content, end: whole.stop_type, tokens: whole.tokens_predicted };
}

test.each([
  ["a\n    b\n  c\n    d", "a\n    b\n  "],
  ["a\n\t\t\t\tb\n\n    c", "a\n\t\t\t\tb\n"],
  ["a\n    b\nc", "a\n    b\n"],
])("%j with 4 of indent is %j", async (says, content) => {
  const tokens = content.length + 1;
  expect(await filled(says, { n_indent: 4 })).toEqual({ content, end: "limit", tokens });
});

test.each(["a\n    b\n      c", "  a", "a\n  "])("%j has 4 of indent, or may yet", async (says) => {
  expect(await filled(says, { n_indent: 4 })).toMatchObject({ content: says, end: "eos" });
});

test("an indent of 0 is no limit", async () => {
  expect(await filled("a\nb", { n_indent: 0 })).toMatchObject({ content: "a\nb", end: "eos" });
});

test("when the time is over, the next line break ends the text", async () => {
  let now = performance.now();
  const clock = vi.spyOn(performance, "now").mockImplementation(() => (now += 1));
  try {
    const ended = { content: "ab\n", end: "limit", tokens: 3 };
    expect(await filled("ab\ncd\n", { t_max_predict_ms: 1 })).toEqual(ended);
    const whole = { content: "ab\ncd\n", end: "eos" };
    expect(await filled("ab\ncd\n", { t_max_predict_ms: 100_000 })).toMatchObject(whole);
    expect(await filled("ab\ncd\n", { t_max_predict_ms: -1 })).toMatchObject(whole);
  } finally {
    clock.mockRestore();
  }
});

test("both limits end a text of /completion and /v1/completions, too", async () => {
  const world = createWorld();
  world.text.says = "a\nb";
  const native = await post(world, "/completion", { prompt: "x", n_indent: 1 });
  expect(native.json()).toMatchObject({ content: "a\n", stop_type: "limit" });
  const openai = await post(world, "/v1/completions", { prompt: "x", n_indent: 1 });
  expect(openai.json()).toMatchObject({
    choices: [{ text: "a\n", finish_reason: "length" }],
    usage: { completion_tokens: 3 },
  });
});
