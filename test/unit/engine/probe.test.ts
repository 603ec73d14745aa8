import childProcess from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { probeModel } from "../../../src/engine/probe.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "fermata-probe-"));
  vi.stubEnv("XDG_CACHE_HOME", folder);
});
afterEach(() => {
  vi.restoreAllMocks();
  vi.unstubAllEnvs();
  syncBuiltinESMExports();
  rmSync(folder, { recursive: true });
});

/** A trial load by an addon whose `probe` does this. @returns its failure */
async function probed(work: string): Promise<unknown> {
  const addonPath = join(folder, "addon.js");
  writeFileSync(addonPath, `exports.probe = () => { ${work} };`);
  const model = join(folder, "model.gguf");
  writeFileSync(model, "");
  return await probeModel([model], { addonPath }).catch((error: unknown) => error);
}

test("a trial load of somebody's file is told no secrets and takes no options of Node", async () => {
  vi.stubEnv("CUDA_VISIBLE_DEVICES", "1");
  vi.stubEnv("FERMATA_API_KEY", "k");
  vi.stubEnv("HF_TOKEN", "t");
  vi.stubEnv("LLAMA_API_KEY", "l");
  vi.stubEnv("AWS_SECRET_ACCESS_KEY", "s");
  vi.stubEnv("NODE_OPTIONS", "--require ./there-is-none.js");
  const told = await probed("throw new Error(JSON.stringify(process.env))");
  expect(told).toMatchObject({ code: "model_invalid" });
  const names = Object.keys(JSON.parse((told as Error).message) as object);
  expect(names).toContain("PATH");
  expect(names).toContain("CUDA_VISIBLE_DEVICES");
  expect(names.filter((name) => /FERMATA|KEY|TOKEN|SECRET|NODE_OPTIONS/.test(name))).toEqual([]);
});

test("its JavaScript has a bounded heap", async () => {
  const told = await probed(
    `throw new Error(String(require("node:v8").getHeapStatistics().heap_size_limit))`,
  );
  expect(Number((told as Error).message) / 2 ** 20).toBeLessThan(300);
});

test("one that does not end is killed after ten minutes", async () => {
  // A minute takes 100 milliseconds.
  const execFile = childProcess.execFile as (...args: unknown[]) => unknown;
  vi.spyOn(childProcess, "execFile").mockImplementation(((...all: unknown[]) => {
    const [file, args, options, done] = all as [string, string[], { timeout: number }, unknown];
    return execFile(file, args, { ...options, timeout: options.timeout / 600 }, done);
  }) as never);
  syncBuiltinESMExports();
  expect(await probed("for (;;);")).toMatchObject({
    code: "model_invalid",
    message: expect.stringContaining("took more than 10 minutes"),
  });
});

test("a model is tried once, and again when its addon or any part of it is another", async () => {
  const tries = join(folder, "tries");
  const addonPath = join(folder, "addon.js");
  const work = `require("node:fs").appendFileSync(${JSON.stringify(tries)}, ".")`;
  writeFileSync(addonPath, `exports.probe = () => { ${work}; };`);
  const parts = [join(folder, "m-1.gguf"), join(folder, "m-2.gguf")] as const;
  for (const part of parts) writeFileSync(part, "");
  const triesWhen = async (change: () => void) => {
    change();
    await probeModel(parts, { addonPath });
    await probeModel(parts, { addonPath });
    return readFileSync(tries, "utf8").length;
  };
  expect(await triesWhen(() => {})).toBe(1);
  expect(await triesWhen(() => writeFileSync(parts[0], "longer"))).toBe(2);
  expect(await triesWhen(() => writeFileSync(parts[1], "longer"))).toBe(3);
  expect(await triesWhen(() => utimesSync(addonPath, 1, 1))).toBe(4);
});

test.each([
  ["EAGAIN", "no_threads", "ulimit -u"],
  ["ENOMEM", "out_of_memory", "memory"],
])(
  "a system that starts no process (%s) is no fault of the model",
  async (code, expected, remedy) => {
    vi.spyOn(childProcess, "execFile").mockImplementation(((...all: unknown[]) => {
      const done = all.at(-1) as (error: Error, stdout: string, stderr: string) => void;
      done(Object.assign(new Error(`spawn node ${code}`), { code }), "", "");
    }) as never);
    syncBuiltinESMExports();
    expect(await probed("")).toMatchObject({
      code: expected,
      message: expect.stringContaining(remedy),
    });
  },
);
