// Who may call: a server that other machines reach needs a key, and a folder may not run code.
import {
  mkdirSync,
  mkdtempSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeEach, describe, expect, test } from "vitest";
import { withAccess } from "../../../src/cli/access.ts";
import { answerBeforeBuild, runCommandLine } from "../../../src/cli/run.ts";
import { serveConfig } from "../../support/serve-config.ts";

let home: string;
let folder: string;
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), "fermata-home-"));
  folder = mkdtempSync(join(tmpdir(), "fermata-clone-"));
});

const env = () => ({ XDG_CONFIG_HOME: home });
const write = (json: object): void =>
  writeFileSync(join(folder, "fermata.json"), JSON.stringify(json));

async function run(args: string[], { early = false, cwd = folder } = {}) {
  let out = "";
  let err = "";
  const code = await (early ? answerBeforeBuild : runCommandLine)(args, {
    cwd,
    env: env(),
    out: (text) => (out += text),
    err: (text) => (err += text),
  });
  return { code, out, err };
}

const load = (args: string[] = []) => serveConfig(args, env(), folder);

describe("a folder's fermata.json", () => {
  test.each([
    ["mcpCommand", "sh"],
    ["mcpArgs", ["-c", "id"]],
    ["mcpConfig", "mcp.json"],
    ["agents", "agents.json"],
    ["host", "0.0.0.0"],
    ["corsOrigin", ["*"]],
    ["auditLog", "/tmp/x"],
    ["apiKey", ["known"]],
    ["auth", false],
    ["allowRequestMcp", true],
    ["model", "x.gguf"],
    ["hf", "a/b"],
    ["modelsDir", "x"],
    ["embeddingModel", "x.gguf"],
    ["chatTemplate", "{{ x }}"],
    ["store", "/tmp/x.sqlite"],
    ["storeLimits", { days: 1 }],
  ])("%s is refused, whoever reads it", async (key, value) => {
    write({ parallel: 2, [key]: value });
    for (const args of [["serve"], ["chat", "hello"], ["doctor"]]) {
      const { code, err } = await run(args);
      expect(code).toBe(2);
      expect(err).toMatch(/^fermata: [^\n]+\n$/);
      expect(err).toContain(`fermata.json: "${key}"`);
      expect(err).toContain('"fermata trust"');
      expect(err).toContain("--config fermata.json");
    }
    expect((await run(["serve"], { early: true })).code).toBe(2);
  });

  test("limits count without trust", () => {
    write({ ctxSize: 4096, parallel: 2, toolTimeout: 5, logLevel: "warn", port: 9 });
    expect(load()).toMatchObject({ ctxSize: 4096, parallel: 2, port: 9, logLevel: "warn" });
  });

  test("a file that the user names needs no trust, and stands for the folder's", () => {
    write({ mcpCommand: "sh" });
    writeFileSync(join(home, "own.json"), '{"mcpConfig": "mcp.json"}');
    const own = join(home, "own.json");
    const expected = { mcpCommand: undefined, mcpConfig: join(home, "mcp.json"), config: own };
    expect(load(["--config", own])).toMatchObject(expected);
    expect(serveConfig([], { ...env(), FERMATA_CONFIG: own }, folder)).toMatchObject(expected);
    expect(load(["--config", "fermata.json"]).mcpCommand).toBe("sh");
    expect(() => load(["--config", "none.json"])).toThrow("none.json does not exist");
    writeFileSync(own, '{"config": "other.json"}');
    expect(() => load(["--config", own])).toThrow(
      '"config" names such a file and cannot stand in one',
    );
  });
});

describe("fermata trust", () => {
  test("binds trust to the content, for its user alone", async () => {
    write({ mcpCommand: "sh", mcpArgs: ["-c", "id\u009b\u202e"], parallel: 3 });
    const { code, out } = await run(["trust"]);
    expect(code).toBe(0);
    expect(out).toContain('mcpCommand: "sh"');
    expect(out).toContain("id\\u{9b}\\u{202e}");
    expect(out).not.toContain("parallel");
    expect(load()).toMatchObject({ mcpCommand: "sh", parallel: 3 });
    const path = join(home, "fermata", "trusted.json");
    expect(statSync(path).mode & 0o777).toBe(0o600);

    write({ mcpCommand: "sh", mcpArgs: ["-c", "other"] });
    expect(() => load()).toThrow(/"mcpCommand" needs your trust again.*has changed/);
    write({ mcpCommand: "sh", mcpArgs: ["-c", "id\u009b\u202e"], parallel: 3 });
    expect(load().mcpCommand).toBe("sh");
  });

  test("covers the files that the file names", async () => {
    write({ mcpConfig: "mcp.json" });
    await run(["trust"]);
    expect(load().mcpConfig).toBe(join(folder, "mcp.json"));
    writeFileSync(join(folder, "mcp.json"), '{"mcpServers": {"x": {"command": "sh"}}}');
    expect(() => load()).toThrow("has changed");
    await run(["trust"]);
    expect(load().mcpConfig).toBe(join(folder, "mcp.json"));
    writeFileSync(join(folder, "mcp.json"), '{"mcpServers": {"x": {"command": "bash"}}}');
    expect(() => load()).toThrow("has changed");
  });

  test("is of a folder, by whatever path, and of no other", async () => {
    const copy = join(folder, "copy");
    mkdirSync(copy);
    write({ mcpCommand: "sh" });
    writeFileSync(join(copy, "fermata.json"), readFileSync(join(folder, "fermata.json")));
    symlinkSync(folder, join(home, "link"));
    expect((await run(["trust", "link"], { cwd: home })).code).toBe(0);
    expect(load().mcpCommand).toBe("sh");
    expect(() => serveConfig([], env(), copy)).toThrow("only read in folders that you trust");
    expect(() => serveConfig([], { XDG_CONFIG_HOME: copy }, folder)).toThrow(
      "only read in folders that you trust",
    );
  });

  test("is listed and taken back", async () => {
    write({ mcpCommand: "sh" });
    expect((await run(["trust", "--list"])).out).toBe("");
    await run(["trust"]);
    expect((await run(["trust", "--list"])).out).toBe(`${folder}\n`);
    expect((await run(["trust", "--remove"])).code).toBe(0);
    expect(() => load()).toThrow("only read in folders that you trust");
    const again = await run(["trust", "--remove"]);
    expect(again.code).toBe(2);
    expect(again.err).toContain("was not trusted");
  });

  test("wants a file that can be read", async () => {
    expect((await run(["trust"])).err).toContain("has no fermata.json");
    writeFileSync(join(folder, "fermata.json"), "{");
    expect((await run(["trust"])).err).toContain("line 1, column 2");
  });
});

describe("a port that other machines reach", () => {
  const access = (...args: string[]) => withAccess(load(args));

  test.each(["127.0.0.1", "127.1.2.3", "::1", "localhost", "::ffff:127.0.0.1"])(
    "%s is not one",
    (host) => {
      expect(access("--host", host)).toMatchObject({ apiKey: [] });
    },
  );

  test.each(["0.0.0.0", "::", "192.168.1.5", "gpu.example", "localhost.example", "128.0.0.1"])(
    "%s is refused without a key, with the remedies",
    async (host) => {
      for (const early of [true, false]) {
        const { code, err } = await run(["serve", "--port=0", "--host", host], { early });
        expect(code).toBe(2);
        expect(err).toContain(`--host ${host}`);
        expect(err).toContain("--api-key @FILE");
        expect(err).toContain("--no-auth");
      }
      expect(access("--host", host, "--no-auth").apiKey).toEqual([]);
      expect(access("--host", host, "--api-key", "k").apiKey).toEqual(["k"]);
    },
  );

  test.each([
    [["--mcp-command", "x"]],
    [["--mcp-config", "x"]],
    [["--agents", "x"]],
    [["--allow-request-mcp"]],
  ])("%j never runs for everybody: --no-auth makes a key", (args) => {
    const { apiKey, generatedKey } = access("--host=0.0.0.0", "--no-auth", ...args);
    expect(apiKey).toEqual([generatedKey]);
    expect(generatedKey).toMatch(/^[\w-]{32}$/);
    expect(access("--host=0.0.0.0", "--no-auth", ...args).generatedKey).not.toBe(generatedKey);
    expect(() => access("--host=0.0.0.0", ...args)).toThrow("there is no key");
    expect(access(...args)).toMatchObject({ apiKey: [] });
  });
});
