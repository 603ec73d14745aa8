// n, seeds, log-probabilities, penalties and raw completions with the shipped model. What is compared
// between requests comes from a deterministic server: of another one, equal batches only give equal tokens.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type ScriptedServer, startScriptedServer } from "../support/scripted-server.ts";

let server: ScriptedServer;
let batching: ScriptedServer;
const messages = [
  { role: "system" as const, content: "You are a helpful assistant. Answer in a sentence or two." },
  { role: "user" as const, content: "What can you do with the files in a folder? Tell me." },
];

beforeAll(async () => {
  const engine = { parallel: 4, threads: 1 };
  server = await startScriptedServer({ engine: { ...engine, deterministic: true } });
  batching = await startScriptedServer({ engine });
});
afterAll(async () => {
  await server.close();
  await batching.close();
});

async function post<T>(path: string, body: object, on = server): Promise<T> {
  const response = await fetch(`${on.url}${path}`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  expect(response.status).toBe(200);
  return (await response.json()) as T;
}

function chat(options: object, on = server) {
  const body = { model: "any", messages, max_tokens: 24, temperature: 0, ...options };
  return on.client.chat.completions.create({ ...body, stream: false });
}

const texts = (completion: Awaited<ReturnType<typeof chat>>) =>
  completion.choices.map(({ message }) => message.content);

async function templatePrompt(): Promise<string> {
  return (await post<{ prompt: string }>("/apply-template", { messages })).prompt;
}

async function tokensOf(content: string): Promise<number[]> {
  return (await post<{ tokens: number[] }>("/tokenize", { content })).tokens;
}

describe("choices", () => {
  test("are equal at temperature 0", async () => {
    const { choices } = await chat({ n: 3 });
    expect(choices.map(({ index }) => index)).toEqual([0, 1, 2]);
    expect(choices[0]!.message.content!.length).toBeGreaterThan(10);
    for (const { message } of choices) expect(message).toEqual(choices[0]!.message);
  });

  test("compute their prompt once", async () => {
    const before = await batching.settledStats();
    const { usage } = await chat({ n: 3 }, batching);
    const after = await batching.settledStats();
    const length = usage!.prompt_tokens;
    expect(after.promptTokens - before.promptTokens).toBe(3 * length);
    expect(after.prefilledTokens - before.prefilledTokens).toBe(length + 2);
    expect(usage!.completion_tokens).toBe(after.generatedTokens - before.generatedTokens);
  });

  test("draw with seeds of their own: choice i of seed s is the choice of seed s + i", async () => {
    const drawn = { temperature: 1.3, seed: 11 };
    const first = texts(await chat({ ...drawn, n: 3 }));
    expect(new Set(first).size).toBe(3);
    expect(texts(await chat({ ...drawn, n: 3 }))).toEqual(first);
    for (const i of [0, 1, 2]) {
      expect(texts(await chat({ ...drawn, seed: 11 + i }))).toEqual([first[i]]);
    }
  });

  // Alone, and with the whole prompt in the cache: the same batches.
  test("a seed draws the same again in the same batches", async () => {
    const drawn = { temperature: 1.3, seed: 11, logprobs: true };
    await chat({ max_tokens: 1 }, batching);
    const first = await chat(drawn, batching);
    const again = await chat(drawn, batching);
    expect(again.choices).toEqual(first.choices);
    expect(texts(await chat({ ...drawn, seed: 12 }, batching))).not.toEqual(texts(first));
  });

  test("stream side by side", async () => {
    const stream = await server.client.chat.completions.create({
      model: "any",
      messages,
      n: 2,
      temperature: 0,
      max_tokens: 12,
      stream: true,
      stream_options: { include_usage: true },
    });
    const texts = ["", ""];
    let usage;
    for await (const chunk of stream) {
      for (const { index, delta } of chunk.choices) texts[index] += delta.content ?? "";
      usage = chunk.usage ?? usage;
    }
    expect(texts[0]).toBe(texts[1]);
    const alone = await chat({ max_tokens: 12 });
    expect(texts[0]).toBe(alone.choices[0]!.message.content);
    expect(usage?.completion_tokens).toBe(2 * alone.usage!.completion_tokens);
  });
});

describe("log-probabilities", () => {
  // Token by token through another endpoint, each from a prompt that ends before it.
  test("of chat are those of the same tokens, each computed from its prompt alone", async () => {
    const { choices } = await chat({ max_tokens: 10, logprobs: true, top_logprobs: 5 });
    const content = choices[0]!.logprobs!.content!;
    expect(content.map(({ token }) => token).join("")).toBe(choices[0]!.message.content);
    expect(content.length).toBeGreaterThan(4);
    // As tokens: the text of two of them may be split otherwise when it is read again.
    const prompt = await tokensOf(await templatePrompt());
    for (const told of content) {
      expect(told.top_logprobs[0]).toEqual({
        token: told.token,
        logprob: told.logprob,
        bytes: told.bytes,
      });
      const alone = await server.client.completions.create({
        model: "any",
        prompt,
        temperature: 0,
        max_tokens: 1,
        logprobs: 5,
      });
      const logprobs = alone.choices[0]!.logprobs!;
      expect(logprobs.tokens).toEqual([told.token]);
      expect(logprobs.token_logprobs).toEqual([told.logprob]);
      expect(logprobs.top_logprobs).toEqual([
        Object.fromEntries(told.top_logprobs.map(({ token, logprob }) => [token, logprob])),
      ]);
      prompt.push(...(await tokensOf(told.token)));
    }
  });

  test("do not depend on what bends the choice", async () => {
    const plain = await chat({ max_tokens: 1, logprobs: true, top_logprobs: 3 });
    const [first] = plain.choices[0]!.logprobs!.content!;
    const [banned] = await tokensOf(first!.token);
    const options = { logit_bias: { [banned!]: -100 }, logprobs: true, top_logprobs: 3 };
    const bent = await chat({ max_tokens: 1, ...options });
    const [other] = bent.choices[0]!.logprobs!.content!;
    expect(other!.token).toBe(first!.top_logprobs[1]!.token);
    expect(other!.logprob).toBe(first!.top_logprobs[1]!.logprob);
    expect(other!.top_logprobs[0]!.token).toBe(first!.token);
  });
});

describe("what bends the choice", () => {
  const repeats = { prompt: "one two three ".repeat(4).trim(), max_tokens: 24 };
  async function most(options: object): Promise<number> {
    const body = { model: "any", temperature: 0, ...repeats, ...options };
    const { text } = (await server.client.completions.create({ ...body, stream: false }))
      .choices[0]!;
    const counts = new Map<string, number>();
    for (const word of text.split(/\s+/).filter(Boolean))
      counts.set(word, (counts.get(word) ?? 0) + 1);
    return Math.max(...counts.values());
  }

  test("penalties and DRY make a repetition shorter", async () => {
    const plain = await most({});
    expect(plain).toBeGreaterThan(4);
    for (const options of [
      { frequency_penalty: 2 },
      { presence_penalty: 2, frequency_penalty: 1 },
      { repeat_penalty: 1.8 },
      { dry_multiplier: 5, dry_base: 2 },
    ]) {
      expect(await most(options)).toBeLessThan(plain);
    }
  });

  test("a bias decides", async () => {
    const [token] = await tokensOf(" seven");
    const completion = await server.client.completions.create({
      model: "any",
      prompt: "one two",
      max_tokens: 1,
      logit_bias: { [token!]: 100 },
    });
    expect(completion.choices[0]!.text).toBe(
      (await post<{ content: string }>("/detokenize", { tokens: [token] })).content,
    );
  });

  test.each([
    { top_n_sigma: 0.01 },
    { mirostat: 2, mirostat_tau: 0.01 },
    { top_k: 1 },
    { typical_p: 0.0001, top_k: 1 },
  ])("%j leaves the likeliest token", async (options) => {
    const greedy = await chat({ max_tokens: 8 });
    const filtered = await chat({ max_tokens: 8, temperature: 1.5, seed: 1, ...options });
    expect(filtered.choices[0]!.message.content).toBe(greedy.choices[0]!.message.content);
  });
});

test("special tokens: text of a prompt has them, text of a chat has not", async () => {
  const spelled = "<|im_start|>user";
  const tokens = await tokensOf(spelled);
  const data = await post<{ tokens: number[] }>("/tokenize", {
    content: spelled,
    parse_special: false,
  });
  expect(data.tokens.length).toBeGreaterThan(tokens.length);
  expect(data.tokens).not.toContain(tokens[0]);
  for (const list of [tokens, data.tokens]) {
    expect((await post<{ content: string }>("/detokenize", { tokens: list })).content).toBe(
      spelled,
    );
  }
  const pieces = await post<{ tokens: { id: number; piece: string | number[] }[] }>("/tokenize", {
    content: "é 🌦️",
    with_pieces: true,
  });
  const bytes = pieces.tokens.flatMap(({ piece }) =>
    typeof piece === "string" ? [...new TextEncoder().encode(piece)] : piece,
  );
  expect(new TextDecoder().decode(Uint8Array.from(bytes))).toBe("é 🌦️");
});

test("a completion of the template's prompt is the chat's answer", async () => {
  const prompt = await templatePrompt();
  const complete = (on: ScriptedServer) =>
    on.client.completions.create({ model: "any", prompt, temperature: 0, max_tokens: 24 });
  const answer = (await chat({})).choices[0]!;
  expect((await complete(server)).choices[0]!.text).toBe(answer.message.content);
  await chat({}, batching);
  const { prompt_tokens, prompt_tokens_details } = (await complete(batching)).usage!;
  expect(prompt_tokens_details!.cached_tokens).toBe(prompt_tokens - 1);
});

describe("vLLM's fields", () => {
  interface Told {
    token_ids: number[];
    stop_reason?: number | string;
  }
  const idsOf = async (options: object) => {
    const { choices } = await chat({ ...options, return_token_ids: true });
    const choice = choices[0]! as (typeof choices)[0] & Told;
    return { ...choice, content: choice.message.content! };
  };
  const echo = (on: ScriptedServer, prompt: number[]) =>
    on.client.completions.create({
      model: "any",
      prompt,
      echo: true,
      logprobs: 3,
      max_tokens: 0,
    });

  test("an echoed prompt has the log-probabilities that its tokens have when they are drawn", async () => {
    const drawn = await idsOf({ max_tokens: 40, logprobs: true, top_logprobs: 3 });
    const told = drawn.logprobs!.content!;
    const prompt = await tokensOf(await templatePrompt());
    const tokens = [...prompt, ...drawn.token_ids.slice(0, told.length)];
    for (const on of [server, batching]) {
      const before = await on.settledStats();
      const { choices, usage } = await echo(on, tokens);
      const after = await on.settledStats();
      const logprobs = choices[0]!.logprobs!;
      expect(usage).toMatchObject({ prompt_tokens: tokens.length, completion_tokens: 0 });
      // Every row is computed, once, whatever is cached.
      expect(after.cachedTokens).toBe(before.cachedTokens);
      expect(after.prefilledTokens - before.prefilledTokens).toBe(tokens.length);
      expect(logprobs.tokens).toHaveLength(tokens.length);
      expect(logprobs.tokens!.join("")).toBe(choices[0]!.text);
      expect(logprobs.token_logprobs![0]).toBeNull();
      const last = logprobs.token_logprobs!.slice(prompt.length);
      told.forEach(({ logprob }, index) => expect(last[index]).toBeCloseTo(logprob, 2));
      const likeliest = logprobs.top_logprobs!.slice(prompt.length);
      told.forEach(({ token }, index) => expect(Object.keys(likeliest[index]!)).toContain(token));
    }
  });

  test("a token inside a character begins where the character does", async () => {
    const { choices } = await post<{
      choices: [{ text: string; logprobs: { text_offset: number[] } }];
    }>("/v1/completions", {
      prompt: "é😀é a",
      max_tokens: 3,
      temperature: 0,
      echo: true,
      logprobs: 0,
    });
    const [{ text, logprobs }] = choices;
    const offsets = logprobs.text_offset;
    expect(offsets).toEqual(offsets.toSorted((one, other) => one - other));
    expect(offsets.at(-1)).toBeLessThan(text.length);
    // Two bytes, four bytes, two bytes.
    expect(offsets.slice(0, 8)).toEqual([0, 0, 1, 1, 1, 1, 3, 3]);
  });

  test("min_tokens: no end token comes before", async () => {
    const options = { temperature: 0, max_tokens: 200 };
    const { token_ids: plain, finish_reason: reason } = await idsOf(options);
    expect(reason).toBe("stop");
    const longer = await idsOf({ ...options, min_tokens: plain.length + 5 });
    expect(longer.token_ids.length).toBeGreaterThanOrEqual(plain.length + 5);
    expect(longer.token_ids.slice(0, plain.length - 1)).toEqual(plain.slice(0, -1));
  });

  test("stop_token_ids end the text; the token and a stop string may stay in it", async () => {
    const plain = await idsOf({});
    const id = plain.token_ids[5]!;
    const count = plain.token_ids.indexOf(id) + 1;
    const cut = await idsOf({ stop_token_ids: [id] });
    expect([cut.finish_reason, cut.stop_reason]).toEqual(["stop", id]);
    expect(cut.token_ids).toEqual(plain.token_ids.slice(0, count));
    const kept = await idsOf({ stop_token_ids: [id], include_stop_str_in_output: true });
    expect(kept.content.length).toBeGreaterThan(cut.content.length);
    expect(plain.content.startsWith(kept.content)).toBe(true);
    const [word] = /(?<= )[A-Za-z]{4,}/.exec(plain.content)!;
    const upTo = plain.content.slice(0, plain.content.indexOf(word));
    expect(await idsOf({ stop: word })).toMatchObject({ content: upTo, stop_reason: word });
    const whole = await idsOf({ stop: word, include_stop_str_in_output: true });
    expect(whole.content).toBe(upTo + word);
  });

  test("bad_words are not written, and allowed tokens alone are", async () => {
    const plain = await idsOf({});
    const [word] = /(?<= )[A-Za-z]{4,}/.exec(plain.content)!;
    expect((await idsOf({ bad_words: [word] })).content).not.toContain(word);
    const allowed = plain.token_ids.slice(0, 3);
    const { token_ids: ids } = await idsOf({ allowed_token_ids: allowed, max_tokens: 12 });
    expect(ids).toHaveLength(12);
    expect(ids.filter((id) => !allowed.includes(id))).toEqual([]);
  });
});

test("a text ends before a line that is indented too little, and what it leaves in the cache is used", async () => {
  // Fewer than 32 tokens are not copied from another slot.
  const prompt = "Write three lines of code, one below the other. ".repeat(5);
  const body = { prompt, guided_regex: "one\\n  two\\nthree{200}", n_indent: 2, n_predict: 300 };
  const first = await post<Record<string, unknown>>("/completion", body, batching);
  expect(first).toMatchObject({ content: "one\n  two\n", stop_type: "limit" });
  expect(first["tokens_predicted"]).toBeLessThan(20);
  const { running } = await batching.settledStats();
  expect(running).toBe(0);
  const again = await post<{ timings: { cache_n: number } }>("/completion", body, batching);
  expect(again.timings.cache_n).toBeGreaterThan(32);
});
