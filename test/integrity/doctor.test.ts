import { cpSync, mkdirSync, mkdtempSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { Diagnosis } from "../../src/cli/doctor/examine.ts";
import { modelPath } from "../support/engine.ts";
import { writeBaseModel } from "../support/base-model.ts";
import { runCommandLine } from "../../src/cli/run.ts";

const cwd = mkdtempSync(join(tmpdir(), "fermata-"));

async function doctor(...args: string[]) {
  let out = "";
  const env = { XDG_CACHE_HOME: join(cwd, "cache") };
  const context = { cwd, env, out: (text: string) => (out += text), err: () => {} };
  const base = ["doctor", "--store", join(cwd, "store.sqlite"), ...args];
  const code = await runCommandLine([...base, "--json"], context);
  const diagnosis = JSON.parse(out) as Diagnosis;
  out = "";
  await runCommandLine(base, context);
  return { code, diagnosis, text: out };
}

test("the shipped model: what it needs, which settings, and why", async () => {
  const { diagnosis, text } = await doctor("--port", "0", "--ctx-size", "1024", "--parallel", "2");
  const model = diagnosis.model!;
  // Of a file of 9.7 MB.
  expect(model.weightBytes).toBeGreaterThan(9_500_000);
  expect(model.weightBytes).toBeLessThan(9_718_400);
  expect(model.neededBytes).toBe(model.weightBytes + model.cacheBytes + model.computeBytes);
  // 2 + 2 slots of 1024 cells of 5120 bytes, which is what the engine takes.
  expect(model.resolved.cellsTotal).toBe(4096);
  expect(model.cacheBytes).toBe(4096 * 5120);
  expect(model.conversationBytes).toBe(1024 * 5120);
  expect(text).toContain("5.2 MB of the cache for a conversation of 1024 tokens");
  const setting = (option: string) => diagnosis.settings.find((item) => item.option === option);
  expect(setting("--ctx-size")).toMatchObject({ value: "1024", from: "flag", why: "as you said" });
  expect(setting("--threads")).toMatchObject({ from: "default" });
  expect(diagnosis.machine.availableBytes).toBeLessThanOrEqual(diagnosis.machine.memoryBytes);
  expect(text).toContain("models of up to about");
  expect(text).toMatch(/--ctx-size +1024 +flag +as you said/);
});

test("layers for which there is no device", async () => {
  const asked = await doctor("--port=0", "--device=none", "--n-gpu-layers=4");
  expect(asked.code).toBe(1);
  expect(asked.diagnosis.findings).toContainEqual({
    level: "error",
    what: expect.stringMatching(/^--n-gpu-layers asks for 4 layers on a GPU, .*\(none\)/u),
    remedy: "change that option or leave it out",
  });
  const { diagnosis } = await doctor("--port=0", "--device=none");
  const setting = (option: string) => diagnosis.settings.find((item) => item.option === option);
  expect(setting("--n-gpu-layers")).toMatchObject({
    value: "0",
    why: expect.stringContaining("CPU"),
  });
  expect(setting("--kv-layout")).toMatchObject({ value: "streams" });
});

test("what is wrong, and what to do", async () => {
  const taken = createServer().listen(0, "127.0.0.1");
  await new Promise((resolve) => taken.once("listening", resolve));
  const { port } = taken.address() as { port: number };
  const { code, diagnosis, text } = await doctor(
    "--port",
    String(port),
    "--threads=500",
    "--ctx-size=8388608",
    "--parallel=16",
    "--cache-type-k=f32",
  );
  await new Promise((resolve) => taken.close(resolve));
  expect(code).toBe(1);
  const said = diagnosis.findings.map(({ what }) => what).join("\n");
  expect(said).toContain(`Port ${port}`);
  expect(said).toContain("--threads 500 is more than");
  expect(said).toMatch(/the model needs about .* are available/);
  expect(said).toContain("is more than the 8192 tokens it was trained for");
  expect(text).toContain("-> take a smaller --ctx-size");
});

test("how tools reach the model", async () => {
  const own = await doctor("--port", "0");
  expect(own.diagnosis.chat).toEqual({
    subject: "Tools",
    text: "the template's own section; format qwen",
  });
  expect(own.text).toContain("Tools     the template's own section; format qwen");
  const generic = await doctor("--port", "0", "--chat-template", "chatml");
  expect(generic.text).toContain(
    "Tools     generic prompt, since the template has no tool section",
  );
});

test("a model without a chat template", async () => {
  const model = writeBaseModel();
  const without = await doctor("--port", "0", "--model", model);
  expect(without.code).toBe(0);
  expect(without.text).toContain("Chat      none: the model has no chat template");
  expect(without.diagnosis.findings).toContainEqual({
    level: "warning",
    what: "the model has no chat template: it completes texts and cannot chat",
    remedy: expect.stringContaining("--chat-template FILE") as string,
  });
  const given = await doctor("--port", "0", "--model", model, "--chat-template", "chatml");
  expect(given.diagnosis.chat?.text).toContain("generic prompt");
});

test("a model that is not there", async () => {
  const { code, diagnosis } = await doctor("--port", "0", "--model", "none.gguf");
  expect(code).toBe(1);
  expect(diagnosis.model).toBeNull();
  expect(diagnosis.findings).toContainEqual(
    expect.objectContaining({ level: "error", remedy: expect.stringContaining("fermata pull") }),
  );
});

test("files that options name and that are missing or wrong", async () => {
  const files = {
    "mcp.json": "{",
    "agents.json": "{}",
    "keys.json": "[]",
    "words.gguf": "GGUF",
  };
  for (const [name, text] of Object.entries(files)) writeFileSync(join(cwd, name), text);
  const faults = async (...args: string[]): Promise<string[]> => {
    const { code, diagnosis, text } = await doctor("--port", "0", ...args);
    expect(code).toBe(1);
    expect(text).not.toContain("Nothing is wrong");
    return diagnosis.findings.map(({ level, what }) => `${level}: ${what}`);
  };
  for (const [option, name] of [
    ["--mcp-config", "mcp.json"],
    ["--agents", "agents.json"],
    ["--api-keys-file", "keys.json"],
    ["--embedding-model", "words.gguf"],
    ["--rerank-model", "words.gguf"],
  ] as const) {
    expect(await faults(option, name)).toEqual([expect.stringMatching(/^error: /)]);
    expect(await faults(option, `${name}.none`)).toEqual([expect.stringContaining(`${name}.none`)]);
  }
  expect(await faults("--rerank-model", modelPath)).toEqual([
    expect.stringContaining("does not rank texts"),
  ]);
  const agents = { supervisor: "boss", agents: { boss: { description: "d", instructions: "i" } } };
  writeFileSync(join(cwd, "agents.json"), JSON.stringify(agents));
  expect((await doctor("--port", "0", "--agents", "agents.json")).code).toBe(0);
});

test("--hf: the pulled file, or that there is none yet", async () => {
  const without = await doctor("--port", "0", "--hf", "owner/name");
  expect(without.code).toBe(0);
  expect(without.diagnosis).toMatchObject({
    model: null,
    findings: [{ level: "warning", what: expect.stringContaining("owner/name is not pulled yet") }],
  });
  const folder = join(cwd, "cache/fermata/models/owner/name/main");
  mkdirSync(folder, { recursive: true });
  const pulled = join(folder, "words-Q4_K_M.gguf");
  cpSync(modelPath, pulled);
  writeFileSync(`${pulled}.json`, "{}");
  const { diagnosis } = await doctor("--port", "0", "--hf", "owner/name");
  expect(diagnosis).toMatchObject({ model: { path: pulled }, findings: [] });
});
