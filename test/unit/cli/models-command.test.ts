import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { commands } from "../../../src/cli/commands/commands.ts";
import { parseArguments } from "../../../src/cli/options/parse-arguments.ts";
import { defaultModel } from "../../../src/cli/models-folder.ts";
import { modelPath } from "../../support/engine.ts";
import { serveConfig } from "../../support/serve-config.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "fermata-models-command-"));
  mkdirSync(join(folder, "owner/name"), { recursive: true });
  cpSync(modelPath, join(folder, "owner/name/small-Q8_0.gguf"));
  writeFileSync(join(folder, "owner/name/small-Q8_0.gguf.json"), "{}");
  cpSync(modelPath, join(folder, "owner/name/plain.gguf"));
  writeFileSync(join(folder, "damaged.gguf"), "GGUF");
  writeFileSync(join(folder, "half-00001-of-00002.gguf"), "GGUF");
  writeFileSync(join(folder, "mmproj-small.gguf"), "GGUF");
});
afterEach(() => rmSync(folder, { recursive: true }));

async function run(...args: string[]): Promise<{ code: number | null; out: string; err: string }> {
  const command = commands.find(({ name }) => name === args[0])!;
  let [out, err] = ["", ""];
  const code = await command.run(
    parseArguments([...args.slice(1), "--models-dir", folder], command, folder),
    {
      cwd: folder,
      env: {},
      out: (text) => (out += text),
      err: (text) => (err += text),
    },
  );
  return { code, out, err };
}

test("list: whole models, with what their files say", async () => {
  const { code, out } = await run("list");
  expect(code).toBe(0);
  expect(out.replaceAll(/ +/g, " ")).toBe(
    "NAME SIZE ARCHITECTURE QUANTIZATION CONTEXT\n" +
      "damaged 4 bytes unreadable\n" +
      // Its name does not say how it is stored.
      "plain 9.7 MB qwen2 F16 8192 tokens\n" +
      "small-Q8_0 9.7 MB qwen2 Q8_0 8192 tokens\n",
  );
});

test.skipIf(process.platform === "win32")(
  "a folder below that is not ours to read hides no other",
  async () => {
    chmodSync(folder, 0o755);
    mkdirSync(join(folder, "private"), { mode: 0o000 });
    const isRoot = process.getuid!() === 0;
    if (isRoot) process.seteuid!(65534);
    try {
      expect((await run("list")).out).toContain("plain");
    } finally {
      if (isRoot) process.seteuid!(0);
      chmodSync(join(folder, "private"), 0o700);
    }
  },
);

test("folders that are links are looked into, once each way", async () => {
  const elsewhere = mkdtempSync(join(tmpdir(), "fermata-linked-"));
  cpSync(modelPath, join(elsewhere, "linked.gguf"));
  symlinkSync(elsewhere, join(folder, "link"));
  symlinkSync(folder, join(elsewhere, "back"));
  symlinkSync(join(folder, "nothing"), join(folder, "broken"));
  const { out } = await run("list");
  const names = out.trim().split("\n").slice(1);
  expect(names.map((line) => line.split(" ")[0])).toEqual([
    "damaged",
    "linked",
    "plain",
    "small-Q8_0",
  ]);
  rmSync(elsewhere, { recursive: true });
});

test("show: one file", async () => {
  const { out } = await run("show", "small-Q8_0");
  expect(out).toContain("layers        ");
  expect(out).toContain("with a section for tools");
  await expect(run("show", "damaged")).rejects.toMatchObject({ code: "model_invalid" });
  await expect(run("show", "smal-Q8_0")).rejects.toMatchObject({
    code: "model_not_found",
    message: expect.stringContaining("Did you mean small-Q8_0?"),
  });
});

test("rm: deletes the model and its checksum, and nothing without consent", async () => {
  const path = join(folder, "owner/name/small-Q8_0.gguf");
  // Tests have no terminal.
  expect(await run("rm", "small-Q8_0")).toMatchObject({ code: 1, out: "" });
  expect(existsSync(path)).toBe(true);
  const { code, out } = await run("rm", "small-Q8_0", "--yes");
  expect(code).toBe(0);
  expect(out).toContain(`Deleted small-Q8_0 (9.7 MB, ${path})`);
  expect(existsSync(path)).toBe(false);
  expect(existsSync(`${path}.json`)).toBe(false);
  expect(existsSync(join(folder, "damaged.gguf"))).toBe(true);
});

test("the default model: by name, by path, or the first of the folder", () => {
  const of = (...args: string[]): string =>
    defaultModel(serveConfig(["--models-dir", folder, ...args], {}, folder)).name;
  expect(of()).toBe("damaged");
  expect(of("--model", "small-Q8_0")).toBe("small-Q8_0");
  expect(of("--model", "owner/name/small-Q8_0.gguf")).toBe("small-Q8_0");
  expect(of("--model", modelPath)).toBe("fermata-small");
  // A path that exists, whatever the folder has.
  cpSync(modelPath, join(folder, "fermata-small.gguf"));
  const { path } = defaultModel(
    serveConfig(["--models-dir", folder, "--model", modelPath], {}, folder),
  );
  expect(path).toBe(modelPath);
  rmSync(join(folder, "fermata-small.gguf"));
  expect(of("--model", "small-Q8_0", "--alias", "mine")).toBe("mine");
  expect(() => of("--model", "smal-Q8_0")).toThrow(
    `There is no model smal-Q8_0 in ${folder}. Did you mean small-Q8_0? There are damaged, plain, small-Q8_0.`,
  );
});

/** A server with these models, and the keys that it was asked with. */
async function fakeServer(models: object[]) {
  const asked: (string | undefined)[] = [];
  const server = createServer(({ headers }, response) => {
    asked.push(headers.authorization);
    response.end(JSON.stringify({ models }));
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  return { port, asked, [Symbol.dispose]: () => void server.close() };
}

async function ps(args: string[], env: NodeJS.ProcessEnv = {}): Promise<string> {
  const command = commands.find(({ name }) => name === "ps")!;
  let said = "";
  const tell = (text: string): void => void (said += text);
  const context = { cwd: folder, env, out: tell, err: tell };
  expect(await command.run(parseArguments(args, command, folder), context)).toBe(0);
  return said;
}

test("ps asks the server of fermata.json, with the key that its file of keys has", async () => {
  using server = await fakeServer([]);
  const { port, asked } = server;
  writeFileSync(join(folder, "keys"), "# of the server\nsecret\n");
  const config = join(folder, "mine.json");
  writeFileSync(config, JSON.stringify({ port, apiKey: ["@keys"] }));
  expect(await ps([], { FERMATA_CONFIG: config })).toContain("No model is in memory.");
  await ps(["--url", `http://127.0.0.1:${port}`, "--api-key", "@keys"]);
  expect(asked).toEqual(["Bearer secret", "Bearer secret"]);
});

test("ps says when a model leaves, and why it does not", async () => {
  const model = { state: "loaded", progress: 1, size: 5, context_length: 8, uses: 0 };
  const at = "2030-01-01T00:00:00.000Z";
  using server = await fakeServer([
    { ...model, id: "agents", leaves_at: null, is_pinned: true },
    { ...model, id: "used", uses: 2, leaves_at: null, is_pinned: false },
    { ...model, id: "idle", leaves_at: null, is_pinned: false },
    { ...model, id: "timed", leaves_at: at, is_pinned: false },
  ]);
  const lines = (await ps(["--port", String(server.port)])).split("\n");
  expect(lines.slice(1, -1).map((line) => line.split(/ {2,}/).at(-1))).toEqual([
    "never",
    "not while it is used",
    "when its room is needed",
    at,
  ]);
});
