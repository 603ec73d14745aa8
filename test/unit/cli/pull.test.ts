import { execFileSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { hostname, tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { pullModel, withPulledModel } from "../../../src/cli/pull/pull.ts";
import { runCommandLine } from "../../../src/cli/run.ts";
import { place } from "../../../src/store/process-place.ts";
import { type FakeHub, startFakeHub } from "../../support/fake-hub.ts";
import { serveConfig } from "../../support/serve-config.ts";

const repository = "owner/small-GGUF";
const content = randomBytes(400_000);
const parts = [randomBytes(3000), randomBytes(2000)];
const files = {
  "README.md": Buffer.from("# small"),
  "small-Q8_0.gguf": randomBytes(5000),
  "small-Q4_K_M.gguf": content,
  "small-mmproj-Q4_K_M.gguf": randomBytes(2000),
  "F16/small-F16-00001-of-00002.gguf": parts[0]!,
  "F16/small-F16-00002-of-00002.gguf": parts[1]!,
  "tiny-IQ1_S.gguf": Buffer.from("kept by git itself"),
};

let hub: FakeHub;
let modelsFolder: string;
let said: string;

beforeEach(async () => {
  hub = await startFakeHub(repository, files);
  modelsFolder = mkdtempSync(join(tmpdir(), "fermata-pull-"));
  said = "";
});
afterEach(async () => {
  await hub.close();
  rmSync(modelsFolder, { recursive: true, force: true });
});

function pull(
  options: { model?: string; file?: string; token?: string; signal?: AbortSignal } = {},
) {
  const { model = repository, file, token, signal = new AbortController().signal } = options;
  return pullModel(
    { model, file, token, revision: "main", endpoint: hub.url, modelsFolder, firstWaitMs: 1 },
    { signal, output: { write: (text) => (said += text), isTerminal: false, columns: () => 80 } },
  );
}

/** Files below the models' folder, without their notes. */
function here(): string[] {
  const all = readdirSync(modelsFolder, { recursive: true, withFileTypes: true });
  return all
    .filter((entry) => entry.isFile() && !entry.name.endsWith(".json"))
    .map(({ name }) => name);
}

const transfers = () => hub.requests.filter(({ host }) => host === "cdn");

test("the Q4_K_M, through the redirect; a second time nothing is transferred", async () => {
  const path = await pull();
  expect(path).toBe(join(modelsFolder, "owner/small-GGUF/main/small-Q4_K_M.gguf"));
  expect(readFileSync(path).equals(content)).toBe(true);
  expect(here()).toEqual(["small-Q4_K_M.gguf"]);
  expect(await pull()).toBe(path);
  expect(transfers()).toHaveLength(1);
});

test("all that is read is of the commit that the branch was at when it was asked for", async () => {
  const path = await pull({ model: `${repository}:F16` });
  const [first, ...others] = hub.requests.filter(({ host }) => host === "hub");
  expect(first!.path).toBe(`/api/models/${repository}/revision/main`);
  expect(others.length).toBeGreaterThan(4);
  for (const { path: asked } of others) expect(asked).toContain("c".repeat(40));
  expect(JSON.parse(readFileSync(`${path}.json`, "utf8"))).toMatchObject({
    kind: "sha256",
    commit: "c".repeat(40),
  });
});

test.each(["../../../../escaped", "main", "C".repeat(39), ""])(
  "a hub whose commit is %j is none",
  async (commit) => {
    hub.commit = commit;
    await expect(pull()).rejects.toMatchObject({
      code: "hub_failed",
      message: expect.stringContaining("it names no commit for main"),
    });
  },
);

test.each([
  ["a checksum that is a path", { lfs: { oid: "../../../../../x", size: 400_000 } }],
  ["a git name that is a path", { oid: "../../../../../x" }],
  ["a path that leads out", { path: "../../../small-Q4_K_M.gguf" }],
  ["an absolute path", { path: "/tmp/small-Q4_K_M.gguf" }],
  ["a size below 0", { lfs: { oid: "a".repeat(64), size: -1 } }],
  ["a size that is none", { lfs: { oid: "a".repeat(64), size: 1.5 } }],
])("a file with %s is not there", async (_name, entry) => {
  const honest = { type: "file", path: "small-Q4_K_M.gguf", size: 400_000, oid: "b".repeat(40) };
  hub.entries = [{ ...honest, ...entry }];
  hub.cuts = [0, 0, 0, 0, 0, 0, 0];
  await expect(pull()).rejects.toMatchObject({ code: "hub_not_found" });
  expect(readdirSync(modelsFolder, { recursive: true })).toEqual([]);
});

test("the token is told to the hub and never to where it redirects", async () => {
  hub.requiredToken = "hf_secret";
  await expect(pull()).rejects.toMatchObject({ code: "hub_denied", param: "token" });
  await pull({ token: "hf_secret" });
  const asked = hub.requests.filter(({ host, token }) => host === "hub" && token !== null);
  expect(asked.every(({ token }) => token === "Bearer hf_secret")).toBe(true);
  expect(transfers()).toMatchObject([{ token: null }]);
});

describe("after a cut", () => {
  test("it goes on where it stopped, in the same run", async () => {
    hub.cuts = [100_000, 50_000];
    const path = await pull();
    expect(readFileSync(path).equals(content)).toBe(true);
    const starts = transfers().map(({ range }) => Number(/\d+/.exec(range ?? "0")![0]));
    expect(starts).toEqual([0, 100_000, 150_000]);
    expect(said).toContain("Going on in");
  });

  test("it goes on in the next run, and until then nothing has the model's name", async () => {
    hub.cuts = [100_000, 0, 0, 0, 0, 0, 0];
    await expect(pull()).rejects.toMatchObject({
      code: "hub_unreachable",
      message: expect.stringContaining("100 kB of 400 kB are kept"),
    });
    expect(here()).toEqual([expect.stringMatching(/^small-Q4_K_M\.gguf\.[0-9a-f]{16}\.part$/)]);
    hub.cuts = [];
    hub.requests.length = 0;
    expect(readFileSync(await pull()).equals(content)).toBe(true);
    expect(transfers()).toMatchObject([{ range: "bytes=100000-" }]);
    expect(here()).toEqual(["small-Q4_K_M.gguf"]);
  });

  test("an interrupt keeps what is there and gives the lock back", async () => {
    const stop = new AbortController();
    hub.gate = new Promise(() => {});
    const pulling = pull({ signal: stop.signal });
    pulling.catch(() => {});
    const half = (): boolean =>
      transfers().length === 1 && here().some((name) => name.endsWith(".part"));
    while (!half()) await new Promise((resolve) => setTimeout(resolve, 5));
    stop.abort();
    await expect(pulling).rejects.toMatchObject({ name: "AbortError" });
    expect(here()).toEqual([expect.stringContaining(".part")]);
    hub.gate = null;
    expect(readFileSync(await pull()).equals(content)).toBe(true);
  });
});

test("a wrong checksum: thrown away, named, and the next pull begins anew", async () => {
  hub.corrupts = true;
  await expect(pull()).rejects.toMatchObject({ code: "checksum_mismatch" });
  expect(here()).toEqual([]);
  hub.corrupts = false;
  expect(readFileSync(await pull()).equals(content)).toBe(true);
});

test("a file that git keeps is checked by git's own name for it", async () => {
  const wanted = { file: "tiny-IQ1_S.gguf" };
  hub.corrupts = true;
  await expect(pull(wanted)).rejects.toMatchObject({ code: "checksum_mismatch" });
  hub.corrupts = false;
  expect(readFileSync(await pull(wanted), "utf8")).toBe("kept by git itself");
});

test("all parts of a split model, named by any; the path is the first one's", async () => {
  const path = await pull({ file: "small-F16-00002-of-00002.gguf" });
  expect(path).toMatch(/main\/F16\/small-F16-00001-of-00002\.gguf$/);
  expect(readFileSync(path).equals(parts[0]!)).toBe(true);
  expect(readFileSync(path.replace("00001-of", "00002-of")).equals(parts[1]!)).toBe(true);
  expect(await pull({ model: `${repository}:f16` })).toBe(path);
  expect(transfers()).toHaveLength(2);
});

describe("mistakes teach", () => {
  test.each([
    [{ model: "owner/none" }, "hub_not_found", "has no repository owner/none"],
    [{ file: "small-Q5.gguf" }, "hub_not_found", "small-Q8_0.gguf (5.0 kB)"],
    [{ model: `${repository}:Q2_K` }, "hub_not_found", "has nothing in Q2_K"],
    [{ model: "../etc" }, "invalid_option", "is not a repository"],
    [{ model: "alone" }, "invalid_option", "Write OWNER/NAME"],
  ])("%j", async (options, code, message) => {
    await expect(pull(options)).rejects.toMatchObject({
      code,
      message: expect.stringContaining(message),
    });
    expect(here()).toEqual([]);
  });

  test("several models of the same quantization: they are listed", async () => {
    await hub.close();
    hub = await startFakeHub(repository, {
      "a-Q4_K_M.gguf": randomBytes(2000),
      "b-Q4_K_M.gguf": randomBytes(3000),
    });
    await expect(pull()).rejects.toMatchObject({
      code: "invalid_option",
      message: expect.stringContaining("a-Q4_K_M.gguf (2.0 kB), b-Q4_K_M.gguf (3.0 kB)"),
    });
  });

  test("a split model of which a part is missing", async () => {
    await hub.close();
    hub = await startFakeHub(repository, { "a-Q4_0-00001-of-00002.gguf": randomBytes(2000) });
    await expect(pull()).rejects.toMatchObject({
      code: "hub_not_found",
      message: expect.stringContaining("1 of its parts"),
    });
  });

  test("a hub whose files would leave the folder", async () => {
    await hub.close();
    hub = await startFakeHub(repository, { "../../evil.gguf": randomBytes(2000) });
    await expect(pull()).rejects.toMatchObject({
      message: expect.stringContaining("no GGUF files"),
    });
  });
});

test("without the hub, what was pulled is taken; what was half pulled is not", async () => {
  const path = await pull();
  hub.cuts = [100, 0, 0, 0, 0, 0, 0];
  await expect(pull({ file: "small-Q8_0.gguf" })).rejects.toMatchObject({
    code: "hub_unreachable",
  });
  await hub.close();
  expect(await pull()).toBe(path);
  await expect(pull({ file: "small-Q8_0.gguf" })).rejects.toMatchObject({
    code: "hub_unreachable",
  });
});

test.each([429, 503])("a hub that answers %i is as one that cannot be reached", async (status) => {
  const path = await pull();
  hub.status = status;
  expect(await pull()).toBe(path);
  expect(said).toContain(`answered with status ${status}. ${path} is here already.`);
  await expect(pull({ file: "small-Q8_0.gguf" })).rejects.toMatchObject({
    code: "hub_unreachable",
  });
});

describe("two pulls of one file", () => {
  test("the second waits, and transfers nothing", async () => {
    let open = (): void => {};
    hub.gate = new Promise((resolve) => (open = resolve));
    const first = pull();
    while (transfers().length === 0) await new Promise((resolve) => setTimeout(resolve, 5));
    const second = pull();
    while (!said.includes("is being pulled by process"))
      await new Promise((resolve) => setTimeout(resolve, 5));
    open();
    expect(await second).toBe(await first);
    expect(transfers()).toHaveLength(1);
  });

  test("the lock of a process that died is taken over", async () => {
    const lock = join(modelsFolder, "owner/small-GGUF/main/small-Q4_K_M.gguf.lock");
    const pid = Number(execFileSync(process.execPath, ["-p", "process.pid"], { encoding: "utf8" }));
    mkdirSync(dirname(lock), { recursive: true });
    writeFileSync(lock, JSON.stringify({ pid, host: hostname() }));
    expect(readFileSync(await pull()).equals(content)).toBe(true);
    expect(existsSync(lock)).toBe(false);
  });

  test.each([
    ["of an earlier start of the container", { pid: process.pid, place: "elsewhere", began: "1" }],
    ["that does not say which process it is", { pid: process.pid }],
    ["whose number another process has by now", { pid: process.ppid, place, began: "1" }],
  ])("a lock %s is taken over", async (_name, holder) => {
    const lock = join(modelsFolder, "owner/small-GGUF/main/small-Q4_K_M.gguf.lock");
    mkdirSync(dirname(lock), { recursive: true });
    writeFileSync(lock, JSON.stringify({ host: hostname(), ...holder }));
    expect(readFileSync(await pull()).equals(content)).toBe(true);
  });
});

/** A disk of its own, of 640 KiB; null where that takes rights that this process has not. */
function mountSmallDisk(folder: string): (() => void) | null {
  try {
    execFileSync("mount", ["-t", "tmpfs", "-o", "size=640k", "tmpfs", folder], { stdio: "ignore" });
    return () => void execFileSync("umount", [folder]);
  } catch {
    return null;
  }
}

describe("a full disk", () => {
  let unmount: (() => void) | null = null;
  beforeEach(() => {
    unmount = mountSmallDisk(modelsFolder);
  });
  afterEach(() => unmount?.());

  test("is told before the transfer if it cannot do", async (context) => {
    if (unmount === null) context.skip("no right to mount");
    writeFileSync(join(modelsFolder, "other"), randomBytes(400_000));
    await expect(pull()).rejects.toMatchObject({
      code: "disk_full",
      message: expect.stringMatching(/needs 400 kB, and .* has \d+ kB free/),
    });
    expect(transfers()).toHaveLength(0);
    expect(here()).not.toContain("small-Q4_K_M.gguf");
  });

  test("in the middle: nothing gets the model's name, and with room it goes on", async (context) => {
    if (unmount === null) context.skip("no right to mount");
    let open = (): void => {};
    hub.gate = new Promise((resolve) => (open = resolve));
    const pulling = pull();
    pulling.catch(() => {});
    while (transfers().length === 0) await new Promise((resolve) => setTimeout(resolve, 5));
    const other = join(modelsFolder, "other");
    expect(() => writeFileSync(other, randomBytes(700_000))).toThrow(/ENOSPC/);
    open();
    await expect(pulling).rejects.toMatchObject({ code: "disk_full" });
    expect(here()).not.toContain("small-Q4_K_M.gguf");
    rmSync(other);
    hub.gate = null;
    expect(readFileSync(await pull()).equals(content)).toBe(true);
  });
});

test("the command prints the path, or with --list what there is", async () => {
  let out = "";
  let err = "";
  const context = {
    cwd: modelsFolder,
    env: { HF_ENDPOINT: hub.url, FERMATA_MODELS_DIR: modelsFolder },
    out: (text: string) => (out += text),
    err: (text: string) => (err += text),
  };
  expect(await runCommandLine(["pull", `${repository}:q8_0`], context)).toBe(0);
  expect(readFileSync(out.trim()).equals(files["small-Q8_0.gguf"])).toBe(true);
  out = "";
  expect(await runCommandLine(["pull", repository, "--list"], context)).toBe(0);
  expect(out).toContain("F16/small-F16-00001-of-00002.gguf  5.0 kB  2 parts\n");
  expect(await runCommandLine(["pull", "owner/none"], context)).toBe(2);
  expect(err).toMatch(/^fermata: .*has no repository owner\/none.*\n$/m);
  expect(await runCommandLine(["pull"], context)).toBe(2);
});

test("serve --hf REPO --file F: the option becomes the path of the model", async () => {
  const env = { HF_ENDPOINT: hub.url, FERMATA_MODELS_DIR: modelsFolder };
  const args = ["-hf", repository, "--hf-file", "small-Q8_0.gguf"];
  const config = serveConfig(args, env, modelsFolder);
  const context = { cwd: modelsFolder, env, out: () => {}, err: () => {} };
  const { model } = await withPulledModel(config, context);
  expect(readFileSync(model!).equals(files["small-Q8_0.gguf"])).toBe(true);
  expect(() => serveConfig([...args, "-m", "x"], {}, "/")).toThrow(/exclude/);
});
