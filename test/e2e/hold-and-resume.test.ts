// One streamed request without `tools`: the model calls real MCP tools while its cells are held. Every
// row that enters llama.cpp is counted twice, by the scheduler and by the audit around the backend.
import { join } from "node:path";
import { afterEach, expect, test } from "vitest";
import {
  callText,
  type ScriptedServer,
  type ScriptedServerOptions,
  startScriptedServer,
} from "../support/scripted-server.ts";

const files = {
  "notes.txt": "The harbour opens at nine.\nBring the blue lantern.\n",
  "todo.txt": "Call Maria on Tuesday.\n",
};
const question = "List the files, then read notes.txt and tell me what it says.";
const answer = "The file notes.txt says:\nThe harbour opens at nine.\nBring the blue lantern.";

let server: ScriptedServer | undefined;
afterEach(async () => {
  await server?.close();
  server = undefined;
});

async function start(options: ScriptedServerOptions): Promise<ScriptedServer> {
  server = await startScriptedServer({ files, ...options });
  await server.script(question, [
    `I'll list the files.\n${callText("list_directory", { path: server.folder })}`,
    callText("read_text_file", { path: join(server.folder, "notes.txt") }),
    answer,
  ]);
  return server;
}

async function ask({ client }: ScriptedServer) {
  const stream = await client.chat.completions.create({
    model: "default",
    messages: [{ role: "user", content: question }],
    stream: true,
    stream_options: { include_usage: true },
  });
  let content = "";
  let finish: string | null = null;
  let calls = 0;
  let usage: { prompt: number; cached: number; completion: number } | undefined;
  for await (const chunk of stream) {
    const choice = chunk.choices[0];
    content += choice?.delta.content ?? "";
    calls += choice?.delta.tool_calls?.length ?? 0;
    finish = choice?.finish_reason ?? finish;
    if (chunk.usage) {
      usage = {
        prompt: chunk.usage.prompt_tokens,
        cached: chunk.usage.prompt_tokens_details?.cached_tokens ?? -1,
        completion: chunk.usage.completion_tokens,
      };
    }
  }
  return { content, finish, calls, usage };
}

test("two tool rounds in one stream cost their new tokens and nothing else", async () => {
  const running = await start({});
  const before = await running.settledStats();
  const { content, finish, calls, usage } = await ask(running);
  const after = await running.settledStats();

  expect(content).toBe(`I'll list the files.\n\n${answer}`);
  expect(finish).toBe("stop");
  expect(calls).toBe(0);

  const rounds = 3;
  const prompt = after.promptTokens - before.promptTokens;
  const resumed = after.resumedTokens - before.resumedTokens;
  const prefilled = after.prefilledTokens - before.prefilledTokens;
  const generated = after.generatedTokens - before.generatedTokens;
  expect(prefilled / (prompt + resumed)).toBe(1);
  expect(after.recomputedTokens).toBe(0);
  // The last token of a round is decoded with the result (glue, counted as resumed), that of the
  // last round never.
  expect(after.auditedRows - before.auditedRows).toBe(prefilled + generated - rounds);
  expect(usage).toEqual({ prompt: prompt + resumed, cached: 0, completion: generated });
  expect(running.chat.counters).toMatchObject({ resumes: 2, rerenders: 0 });
  expect(await running.engine.checkIntegrity()).toBe("");

  // The same question again: everything but the prompt's last token is cached.
  const again = await ask(running);
  expect(again.content).toBe(content);
  expect(again.usage?.cached).toBe(prompt - 1);
});

test("the ratio stays 1.00 with seven other requests running", async () => {
  const running = await start({ engine: { retainedSlots: 8 } });
  const others = Array.from({ length: 7 }, (_, i) =>
    running.client.chat.completions.create({
      model: "default",
      messages: [{ role: "user", content: `Count from ${i} on, and tell a long story.` }],
      tools: [],
      max_tokens: 150,
    }),
  );
  const { content, finish } = await ask(running);
  await Promise.all(others);
  const stats = await running.settledStats();
  expect(content).toContain("Bring the blue lantern.");
  expect(finish).toBe("stop");
  expect(stats.prefilledTokens).toBe(stats.promptTokens - stats.cachedTokens + stats.resumedTokens);
  expect(stats.recomputedTokens).toBe(0);
  expect(await running.engine.checkIntegrity()).toBe("");
});

test("the ratio stays 1.00 with one sequence at a time", async () => {
  const running = await start({ engine: { parallel: 1, retainedSlots: 3 } });
  const results = await Promise.all([ask(running), ask(running), ask(running)]);
  const stats = await running.settledStats();
  for (const { content } of results) expect(content).toContain("Bring the blue lantern.");
  expect(stats.prefilledTokens).toBe(stats.promptTokens - stats.cachedTokens + stats.resumedTokens);
  expect(stats.recomputedTokens).toBe(0);
});

test("an error of a tool goes back to the model", async () => {
  const running = await start({});
  const broken = "Read missing.txt.";
  await running.script(broken, [
    callText("read_text_file", { path: join(running.folder, "missing.txt") }),
    "That file does not exist.",
  ]);
  const completion = await running.client.chat.completions.create({
    model: "default",
    messages: [{ role: "user", content: broken }],
  });
  expect(completion.choices[0]?.message.content).toBe("That file does not exist.");
  const metrics = await (await fetch(`${running.url}/metrics`)).text();
  expect(metrics).toMatch(
    /fermata_tool_calls_total\{server="mcp",tool="read_text_file",outcome="error"\} 1/,
  );
});
