// A conversation of 4,000 tokens after a restart: the time to the first token of its next turn, from the cache's files and
// computed anew. `npm run test:real -- restart` runs only this.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { serveCommand, type ServedCommand } from "../support/command-line.ts";
import { realModelPath } from "../support/real-models.ts";

const modelPath = realModelPath("qwen2.5-coder");

type Message = { role: "system" | "user" | "assistant"; content: string };

/** A list of files and what is in them, as an agent reads it. */
const read = Array.from(
  { length: 200 },
  (_, index) =>
    `src/part-${index}.ts exports ${index + 3} functions, tested in test/part-${index}.ts.`,
).join("\n");
const begins: Message[] = [
  { role: "system", content: `You know this project.\n${read}` },
  { role: "user", content: "How many functions does src/part-7.ts export?" },
];

interface Turn {
  text: string;
  /** Milliseconds to the first token. */
  ttft: number;
  prompt: number;
  cached: number;
}

interface Chunk {
  choices: { delta: { content?: string } }[];
  usage?: { prompt_tokens: number; prompt_tokens_details: { cached_tokens: number } };
}

async function ask({ url }: ServedCommand, messages: Message[]): Promise<Turn> {
  const started = performance.now();
  const reply = await fetch(`${url}/v1/chat/completions`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({
      messages,
      temperature: 0,
      max_tokens: 24,
      stream: true,
      stream_options: { include_usage: true },
    }),
  });
  expect(reply.status).toBe(200);
  const turn: Turn = { text: "", ttft: 0, prompt: 0, cached: 0 };
  let rest = "";
  for await (const bytes of reply.body!.pipeThrough(new TextDecoderStream())) {
    const lines = (rest + bytes).split("\n");
    rest = lines.pop()!;
    for (const line of lines) {
      if (!line.startsWith("data: {")) continue;
      const { choices, usage } = JSON.parse(line.slice(6)) as Chunk;
      const text = choices[0]?.delta.content ?? "";
      if (text !== "" && turn.text === "") turn.ttft = performance.now() - started;
      turn.text += text;
      turn.prompt = usage?.prompt_tokens ?? turn.prompt;
      turn.cached = usage?.prompt_tokens_details.cached_tokens ?? turn.cached;
    }
  }
  return turn;
}

describe.skipIf(modelPath === undefined)("a conversation of 4,000 tokens", () => {
  let folder: string;
  let server: ServedCommand | undefined;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), "fermata-real-restart-"));
  });
  afterEach(async () => {
    await server?.stop("SIGKILL");
    rmSync(folder, { recursive: true });
  });

  /** Its weights are in memory. */
  async function serve(...args: string[]): Promise<ServedCommand> {
    await server?.stop();
    const common = ["--store=none", `--model=${modelPath}`, "--ctx-size=8192", "--parallel=2"];
    server = await serveCommand(...common, ...args);
    await ask(server, [{ role: "user", content: "Hello!" }]);
    return server;
  }

  test("a turn after a restart takes a tenth of the time that computing takes", async () => {
    const files = ["--cache-disk=2048", `--cache-dir=${folder}`];
    const { text } = await ask(await serve(...files), begins);
    const goesOn: Message[] = [
      ...begins,
      { role: "assistant", content: text },
      { role: "user", content: "And src/part-90.ts?" },
    ];
    const kept = await ask(await serve(...files), goesOn);
    const computed = await ask(await serve(), goesOn);
    const ratio = kept.ttft / computed.ttft;
    console.info(
      `${kept.prompt} tokens, ${kept.cached} of them from the file: ${Math.round(kept.ttft)} ms to the first token; ` +
        `computed (${computed.cached} cached): ${Math.round(computed.ttft)} ms; ${ratio.toFixed(3)}x`,
    );
    expect(kept.prompt).toBeGreaterThan(4000);
    expect(kept.cached).toBeGreaterThan(kept.prompt - 60);
    expect(computed.cached).toBeLessThan(60);
    expect(kept.text).toBe(computed.text);
    // Both on the same machine, one after the other.
    expect(ratio).toBeLessThan(0.1);
  });
});
