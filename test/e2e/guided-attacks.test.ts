// Schemas, expressions and grammars made to hurt, through the command as a person has it: each request is
// refused, or works, and a stream beside it says what it says alone. With FERMATA_ATTACKS=measure the
// times are printed.
import { afterAll, beforeAll, expect, test } from "vitest";
import { type AttackFields, attacks } from "../support/attacks.ts";
import { type ServedCommand, serveCommand } from "../support/command-line.ts";

const isMeasured = process.env["FERMATA_ATTACKS"] === "measure";
const streamTokens = 120;

let server: ServedCommand;
let endToken: number;
let aloneText: string;
let aloneGaps: number[];
const gaps: number[] = [];
const times: [name: string, milliseconds: number, outcome: string][] = [];

beforeAll(async () => {
  const model = process.env["FERMATA_TEST_MODEL"];
  // So that no attack is refused by its size alone.
  server = await serveCommand(
    "--store=none",
    "--max-body=64",
    ...(model === undefined ? [] : [`--model=${model}`]),
  );
  const { tokens } = (await (await post("/tokenize", { content: "<|im_end|>" })).json()) as {
    tokens: number[];
  };
  endToken = tokens[0]!;
  await stream();
  ({ text: aloneText, gaps: aloneGaps } = await stream());
});

afterAll(async () => {
  if (isMeasured) report();
  await server.stop();
});

function post(path: string, body: unknown): Promise<Response> {
  return fetch(`${server.url}${path}`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });
}

/** Greedy, of a fixed length. */
async function stream(): Promise<{ text: string; gaps: number[] }> {
  const response = await post("/v1/completions", {
    model: "default",
    prompt: "The weather in Rome",
    max_tokens: streamTokens,
    temperature: 0,
    logit_bias: { [endToken]: -100 },
    stream: true,
  });
  let text = "";
  let rest = "";
  let last: number | undefined;
  const between: number[] = [];
  for await (const bytes of response.body!.pipeThrough(new TextDecoderStream())) {
    const lines = (rest + bytes).split("\n");
    rest = lines.pop()!;
    for (const line of lines) {
      if (!line.startsWith("data: {")) continue;
      const chunk = JSON.parse(line.slice(6)) as { choices?: { text: string }[] };
      text += chunk.choices?.[0]?.text ?? "";
      const now = performance.now();
      if (last !== undefined) between.push(now - last);
      last = now;
    }
  }
  return { text, gaps: between };
}

async function attack(name: string, fields: AttackFields): Promise<void> {
  const start = performance.now();
  const response = await post("/v1/chat/completions", {
    model: "default",
    messages: [{ role: "user", content: "Hi" }],
    max_tokens: 12,
    temperature: 0,
    ...fields,
  });
  const body = (await response.json()) as { error?: { code: string; param: string | null } };
  const outcome = response.status === 200 ? "works" : `${response.status} ${body.error?.code}`;
  times.push([name, performance.now() - start, outcome]);
  expect(outcome).toMatch(/^works$|^400 /u);
  if (response.status === 400) expect(body.error?.param).toEqual(expect.any(String));
}

test.each(attacks)("%s", async (name, fields) => {
  const beside = stream();
  if (isMeasured) await new Promise((resolve) => setTimeout(resolve, 50));
  await attack(name, fields);
  const { text, gaps: between } = await beside;
  expect(text).toBe(aloneText);
  gaps.push(...between);
});

function report(): void {
  const at = (list: readonly number[], share: number): string =>
    list.toSorted((a, b) => a - b)[Math.ceil(share * list.length) - 1]?.toFixed(1) ?? "";
  const describe = (list: readonly number[]): string =>
    `p50 ${at(list, 0.5)}, p99 ${at(list, 0.99)}, longest ${at(list, 1)} ms`;
  for (const [name, milliseconds, outcome] of times)
    console.log(`${milliseconds.toFixed(0).padStart(6)} ms  ${outcome}  ${name}`);
  console.log(`a token of the other stream, alone: ${describe(aloneGaps)}`);
  console.log(`a token of the other stream, under attack: ${describe(gaps)}`);
}
