// The examples as a person runs them: programs of their own against `fermata serve` with the model that
// ships. Nothing is scripted.
import { execFile } from "node:child_process";
import { readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type ServedCommand, serveCommand } from "../support/command-line.ts";
import { demoFolder, makeDemoFolder } from "../support/demo-folder.ts";
import { pythonWith } from "../support/python.ts";
import { filesystemServer } from "../support/filesystem-server.ts";

const run = promisify(execFile);
const root = fileURLToPath(new URL("../..", import.meta.url));
const compiled = join(root, "examples/.out");

const python = pythonWith("openai");

const common = ["--store=none", "--parallel=2", "--retained-slots=4", "--threads=1"];
/** Of examples/mcp.json and examples/agents.json. */
let servers: ServedCommand;
let filesystem: ServedCommand;

beforeAll(async () => {
  await makeDemoFolder();
  await Promise.all([
    run(process.execPath, ["node_modules/typescript/bin/tsc", "-p", "examples/typescript"], {
      cwd: root,
    }).catch((error: { stdout: string }) => Promise.reject(new Error(error.stdout))),
    serveCommand("--mcp-config=examples/mcp.json", "--agents=examples/agents.json", ...common).then(
      (it) => (servers = it),
    ),
    serveCommand(
      "--mcp-command=node",
      `--mcp-args=${filesystemServer},${demoFolder}`,
      ...common,
    ).then((it) => (filesystem = it)),
  ]);
});

afterAll(async () => {
  await Promise.all([servers.stop(), filesystem.stop()]);
  await rm(compiled, { recursive: true, force: true });
});

async function output(program: string, file: string): Promise<string> {
  const server = /streaming/.test(file) ? filesystem : servers;
  const env = { ...process.env, FERMATA_URL: `${server.url}/v1` };
  const { stdout } = await run(program, [file], { cwd: root, env, timeout: 200_000 });
  return stdout;
}

const typescript = (name: string): Promise<string> =>
  output(process.execPath, join(compiled, `${name}.js`));
const inPython = (name: string, program = "python3"): Promise<string> =>
  output(program, join(root, `examples/python/${name}.py`));

/** What both languages print, apart from how each writes JSON. */
const expected = {
  toolCalling: [
    /get_weather\(.*Tokyo.*\) -> .*19/,
    /It is 19 degrees and rainy in Tokyo\./,
    /calculator\(.*12 \* 7.*\) -> .*84/,
    /The result is 84\./,
    /web_search\(.*tool calling.*\) -> .*Tool calling explained/,
    /I found Tool calling explained at https:\/\/example\.com/,
  ],
  external: [
    /Execute: get_weather\(.*Tokyo.*\)/,
    /It is 19 degrees and rainy in Tokyo\./,
    /cached tokens: [1-9]/,
  ],
  streaming: [/The harbour opens at nine\.\nBring the blue lantern\./],
  servers: [
    /city: get_weather\(.*Paris.*\)/,
    /It is 21 degrees and sunny in Paris\./,
    /files: read_file\(.*notes\.txt.*\)/,
    /The harbour opens at nine\.\nBring the blue lantern\./,
  ],
  agents: [
    /models: fermata-small, supervisor, researcher, analyst/,
    /The analyst says: It is 21 degrees and sunny in Paris\./,
  ],
};

function expectAll(text: string, patterns: readonly RegExp[]): void {
  for (const pattern of patterns) expect(text).toMatch(pattern);
}

test("TypeScript: weather, calculator, search", async () =>
  expectAll(await typescript("tool-calling"), expected.toolCalling));
test("TypeScript: tools handled by the client", async () =>
  expectAll(await typescript("external-tools"), expected.external));
test("TypeScript: streaming with MCP", async () =>
  expectAll(await typescript("streaming-with-mcp"), expected.streaming));
test("TypeScript: several servers", async () =>
  expectAll(await typescript("several-servers"), expected.servers));
test("TypeScript: agents", async () => expectAll(await typescript("agents"), expected.agents));
test("TypeScript: the engine as a library", async () =>
  expectAll(await typescript("engine-api"), [
    /Parsed: get_weather with \{"location": "Tokyo"\}/,
    /held with 1 call, 1 sequence held/,
    /get_weather runs for Tokyo/,
    /It is 19 degrees and rainy in Tokyo\./,
    /read (\d+) tokens, computed \1 of them/,
  ]));

test("README: the engine as a library", async () => {
  const readme = await readFile(join(root, "README.md"), "utf8");
  const [, program] = /```js\n(import \{ Engine \}[^`]*)```/.exec(readme) ?? [];
  // Inside the package, where its own name resolves.
  const file = join(compiled, "readme-library.mjs");
  await writeFile(file, program!);
  expect(await output(process.execPath, file)).toBe("Hello! How can I help you?");
});

test("Python: weather, calculator, search", async () =>
  expectAll(await inPython("tool_calling"), expected.toolCalling));
test("Python: several servers", async () =>
  expectAll(await inPython("several_servers"), expected.servers));
test("Python: agents", async () => expectAll(await inPython("agents"), expected.agents));
test.skipIf(python === undefined)("Python: tools handled by the client (needs openai)", async () =>
  expectAll(await inPython("external_tools", python), expected.external),
);
test.skipIf(python === undefined)("Python: streaming with MCP (needs openai)", async () =>
  expectAll(await inPython("streaming_with_mcp", python), expected.streaming),
);

describe("without a server an example ends with what starts one", () => {
  const env = { ...process.env, FERMATA_URL: "http://127.0.0.1:1/v1" };
  test.each([
    ["TypeScript", process.execPath, join(compiled, "agents.js")],
    ["Python", "python3", join(root, "examples/python/agents.py")],
  ])("%s", async (_, program, file) => {
    const { code, stderr } = await run(program, [file], { cwd: root, env }).then(
      () => expect.fail("It ended as if there were a server."),
      (error: { code: number; stderr: string }) => error,
    );
    expect(code).toBe(1);
    expect(stderr).toMatch(
      /^Expected a server at http:\/\/127\.0\.0\.1:1\/v1 \(.+\)\. Start it with: npm start -- .+agents\.json\nFERMATA_URL .+\n$/u,
    );
  });

  test("with the wrong key, too", async () => {
    const guarded = await serveCommand("--api-key=right", ...common);
    try {
      const env = { ...process.env, FERMATA_URL: `${guarded.url}/v1` };
      for (const [program, file] of [
        [process.execPath, join(compiled, "external-tools.js")],
        ["python3", join(root, "examples/python/tool_calling.py")],
      ] as const)
        await expect(run(program, [file], { cwd: root, env })).rejects.toMatchObject({
          stderr: expect.stringMatching(/^Expected a server at .+ \(401 Unauthorized\)\. /u),
        });
    } finally {
      await guarded.stop();
    }
  });
});
