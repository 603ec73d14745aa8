// What docs/tool-calling.md, docs/debugging-tool-calls.md and the guides of streaming show is run here as it stands there:
// commands, programs, and the lines of the log. Nothing is scripted.
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { type ServedCommand, serveCommand } from "../support/command-line.ts";
import { makeDemoFolder } from "../support/demo-folder.ts";
import { eventually } from "../support/eventually.ts";
import { pythonWith } from "../support/python.ts";
import { filesystemServer } from "../support/filesystem-server.ts";

const run = promisify(execFile);
const realFetch = globalThis.fetch;
const root = fileURLToPath(new URL("../..", import.meta.url));
const python = pythonWith("openai");

/** The blocks of one language in a guide. */
async function blocks(guide: string, language: string): Promise<string[]> {
  const text = await readFile(join(root, "docs", guide), "utf8");
  const found = text.matchAll(new RegExp(`^\`\`\`${language}\\n(.*?)^\`\`\`$`, "gms"));
  return [...found].map(([, block]) => block!);
}

/** Its arguments; npx's package is the one that is installed for the tests. */
function served(block: string): Promise<ServedCommand> {
  const [, words] = /^fermata serve (.*?)(?: 2>\S+)?(?: +#.*)?$/m.exec(block)!;
  const args = words!
    .replace("--mcp-command npx", "--mcp-command node")
    .replace("-y,@modelcontextprotocol/server-filesystem", filesystemServer)
    .split(" ");
  return serveCommand(...args, "--store=none", "--parallel=2", "--threads=1");
}

let folder: string;
/** As tool-calling.md starts it, and as debugging-tool-calls.md does. */
let filesystem: ServedCommand;
let debugged: ServedCommand;

beforeAll(async () => {
  await makeDemoFolder();
  folder = await mkdtemp(join(tmpdir(), "fermata-docs-"));
  const [withTools] = await blocks("tool-calling.md", "sh");
  const [withLines] = await blocks("debugging-tool-calls.md", "sh");
  filesystem = await served(withTools!);
  debugged = await served(withLines!);
});

afterAll(async () => {
  await Promise.all([filesystem.stop(), debugged.stop()]);
  await rm(folder, { recursive: true, force: true });
});

/** @returns everything it exports */
async function module(source: string): Promise<Record<string, unknown>> {
  const file = join(folder, `block-${Math.random().toString(36).slice(2)}.ts`);
  const library = (path: string): string => pathToFileURL(join(root, "src", path)).href;
  const text = source
    .replaceAll('from "fermata"', `from "${library("index.ts")}"`)
    .replaceAll('from "fermata/client"', `from "${library("client/index.ts")}"`);
  await writeFile(file, text);
  return (await import(/* @vite-ignore */ file)) as Record<string, unknown>;
}

const weatherTool = {
  type: "function",
  name: "get_weather",
  parameters: { type: "object", properties: { location: { type: "string" } } },
};

async function post(url: string, body: object): Promise<string> {
  const headers = { "content-type": "application/json" };
  const reply = await fetch(url, { method: "POST", headers, body: JSON.stringify(body) });
  expect(reply.status).toBe(200);
  return await reply.text();
}

describe("tool-calling.md", () => {
  test.skipIf(python === undefined)(
    "its Python: the client's tool, then the server's",
    async () => {
      const [external, internal] = await blocks("tool-calling.md", "python");
      const program = [
        external!,
        "assert answer.choices[0].message.content, answer",
        "assert any(isinstance(m, dict) and m['role'] == 'tool' for m in messages), messages",
        internal!,
      ].join("\n");
      const { port } = new URL(filesystem.url);
      const here = program.replaceAll("localhost:8000", `127.0.0.1:${port}`);
      const { stdout } = await run(python!, ["-c", here], { timeout: 200_000 });
      expect(stdout).toContain("notes.txt");
    },
  );

  test("its TypeScript: a definition for a request, a tool for the loop", async () => {
    const [block] = await blocks("tool-calling.md", "ts");
    const { weather, ToolParser } = await module(`${block!}\nexport { weather, ToolParser };`);
    const { build, run: made } = weather as { build(): object; run(f: object): object };
    expect(build.call(weather)).toMatchObject({
      type: "function",
      function: { name: "get_weather", parameters: { required: ["location"] } },
    });
    expect(made.call(weather, () => "sun")).toMatchObject({ definition: { name: "get_weather" } });
    const parser = new (ToolParser as new () => { parse(text: string): object[] })();
    const call = '{"name": "get_weather", "arguments": {"location": "Tokyo"}}';
    for (const text of [`<tool_call>${call}</tool_call>`, call, `\`\`\`json\n${call}\n\`\`\``])
      expect(parser.parse(text)).toMatchObject([{ name: "get_weather" }]);
  });

  test("the state of the tools, in a stream that asks for it", async () => {
    const text = await post(`${filesystem.url}/v1/chat/completions`, {
      messages: [{ role: "user", content: "List the files in /tmp/demo/docs" }],
      stream: true,
      fermata: { tool_status: true },
    });
    const told = [...text.matchAll(/^data: (\{.*"tool_status".*\})$/gm)].map(
      ([, data]) => JSON.parse(data!).tool_status as object,
    );
    expect(told[0]).toMatchObject({ name: "list_directory", state: "running" });
    expect(told.at(-1)).toMatchObject({ state: "done", milliseconds: expect.any(Number) });
  });
});

describe("debugging-tool-calls.md", () => {
  test("its lines are in the log, with their fields, and without contents", async () => {
    const responses = `${debugged.url}/v1/responses`;
    const question = {
      input: "What is the weather in Tokyo?",
      tools: [weatherTool],
      tool_choice: "required",
    };
    await post(responses, question);
    const lines = (): Record<string, unknown>[] =>
      debugged
        .log()
        .split("\n")
        .filter((line) => line.startsWith("{"))
        .map((line) => JSON.parse(line) as Record<string, unknown>);
    const phases = lines().filter(({ msg }) => String(msg).startsWith("TOOL_CALL"));
    const names = phases.map(({ msg }) => String(msg).replace(" (compat)", ""));
    expect([...new Set(names)]).toEqual([
      "TOOL_CALL added",
      "TOOL_CALL delta",
      "TOOL_CALL completed",
      "TOOL_CALL done",
    ]);
    expect(new Set(phases.map(({ call_id: id }) => id)).size).toBe(1);
    expect(phases.at(-1)).toMatchObject({ msg: "TOOL_CALL done (compat)", name: "get_weather" });
    expect(lines()).toContainEqual(
      expect.objectContaining({ msg: "turn ended", has_tool_calls: true, tool_calls: 1 }),
    );
    expect(debugged.log()).not.toContain("Tokyo");
  });

  test("the table's lines of tools that the server runs, and the metrics it names", async () => {
    await post(`${filesystem.url}/v1/chat/completions`, {
      messages: [{ role: "user", content: "List the files in /tmp/demo/docs" }],
    });
    const guide = await readFile(join(root, "docs/debugging-tool-calls.md"), "utf8");
    const [, section] = guide.split("## Turns and tools that the server runs");
    const rows = [...section!.matchAll(/^\| `([a-z ]+)` \| (.*) \|$/gm)];
    expect(rows.map(([, line]) => line)).toEqual([
      "turn ended",
      "tool call ended",
      "answer finished",
    ]);
    await eventually(async () => {
      for (const [, line, told] of rows) {
        const found = filesystem
          .log()
          .split("\n")
          .find((text) => text.includes(`"msg":"${line}"`));
        const [fields] = told!.split(", and `agent`");
        for (const [, field] of fields!.replaceAll(/\(.*\)/g, "").matchAll(/`(\w+)`/g))
          expect(Object.keys(JSON.parse(found!) as object)).toContain(field);
      }
    });
    const metrics = await (await fetch(`${filesystem.url}/metrics`)).text();
    for (const [, name] of guide.matchAll(/`(fermata_\w+)[{`]/g)) expect(metrics).toContain(name);
  });

  test("its TypeScript: the judgement as a class", async () => {
    const [block] = await blocks("debugging-tool-calls.md", "ts");
    const [imports, ...rest] = block!.split("\n\n");
    const source = `${imports!}
      export async function judge(choice: any, logger: any, runThem: () => Promise<void>) {
        ${rest.join("\n")}
      }`;
    const { judge } = await module(source);
    const judged = async (finish_reason: string, text: string): Promise<[number, string[]]> => {
      let count = 0;
      const said: string[] = [];
      const say = (_details: object, message: string): void => void said.push(message);
      const logger = { info: () => {}, warn: say, error: say };
      const call = { id: "call_1", function: { name: "search", arguments: text } };
      const run = judge as (...args: unknown[]) => Promise<void>;
      await run({ finish_reason, message: { tool_calls: [call] } }, logger, async () => {
        count++;
      });
      return [count, said];
    };
    const guide = await readFile(join(root, "docs/debugging-tool-calls.md"), "utf8");
    for (const [reason, text, count, told] of [
      ["tool_calls", '{"q": "test"}', 1, 0],
      ["stop", '{"q": "test"}', 1, 1],
      ["length", '{"q": "test"}', 1, 2],
      ["length", '{"q": "test", "lim', 0, 3],
      ["tool_calls", '{"q": "test", "lim', 1, 0],
    ] as const) {
      const [ran, said] = await judged(reason, text);
      expect([reason, text, ran, said.length]).toEqual([reason, text, count, told]);
      for (const message of said) expect(guide).toContain(message);
    }
  });
});

test("streaming-to-a-frontend.md: a page starts a run and reads its answer", async () => {
  const [block] = await blocks("streaming-to-a-frontend.md", "ts");
  const asOnPage = vi
    .spyOn(globalThis, "fetch")
    .mockImplementation((url, init) => realFetch(new URL(String(url), debugged.url), init));
  const shown = vi.spyOn(console, "log").mockImplementation(() => {});
  try {
    const { state } = await module(`${block!}\nexport { state };`);
    expect(state).toMatchObject({
      end: { status: "complete" },
      message: expect.stringMatching(/./),
    });
    expect(shown.mock.calls.at(-1)).toEqual([(state as { message: string }).message, []]);
  } finally {
    asOnPage.mockRestore();
    shown.mockRestore();
  }
});

test("streaming-from-sub-agents.md: a program shows a sub-agent's calls below its own", async () => {
  const [block] = await blocks("streaming-from-sub-agents.md", "ts");
  const { show } = await module(`${block!}\nexport { show };`);
  const call = (name: string) => ({ id: name, name, arguments: "{}" });
  const start = { type: "tool-start", call: call("read_file"), server: "files" };
  const report = { type: "agent", agent: "reader", event: start };
  const shown = vi.spyOn(console, "log").mockImplementation(() => {});
  const written = vi.spyOn(process.stdout, "write").mockImplementation(() => true);
  try {
    const events = [
      { type: "tool-start", call: call("delegate"), server: "agent" },
      { type: "tool-report", call: call("delegate"), server: "agent", report },
      {
        type: "tool-report",
        call: call("delegate"),
        server: "agent",
        report: { type: "output", text: "Read." },
      },
    ];
    for (const event of events) (show as (event: object) => void)(event);
    expect(shown.mock.calls).toEqual([["delegate {}"], ["  read_file {}"]]);
    expect(written.mock.calls.map(([text]) => text)).toContain("Read.");
  } finally {
    shown.mockRestore();
    written.mockRestore();
  }
});

test("a reader of a command's text may leave before its end", async () => {
  const main = join(root, "dist/cli/main.js");
  const child = spawn(process.execPath, [main, "serve", "--help"], { stdio: "pipe" });
  child.stdout.destroy();
  let said = "";
  child.stderr.on("data", (data: Buffer) => (said += data.toString()));
  const [code] = (await once(child, "close")) as [number];
  expect([code, said]).toEqual([0, ""]);
});
