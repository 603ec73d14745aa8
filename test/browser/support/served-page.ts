// What the page's states are tested against: the real server with the model that ships, real MCP servers,
// sub-agents and a store. Of some questions the choice of tokens is scripted, so that a test decides which
// tools are called; they pass the engine as all others do.
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { readMcpConfig } from "../../../src/mcp/config.ts";
import { McpHost } from "../../../src/mcp/host.ts";
import { readPageFiles } from "../../../src/server/about/page.ts";
import { serveCommand } from "../../support/command-line.ts";
import {
  demoFolder as folder,
  demoNotes as notes,
  makeDemoFolder,
} from "../../support/demo-folder.ts";
import { callText, startScriptedServer } from "../../support/scripted-server.ts";
import { filesystemServer } from "../../support/filesystem-server.ts";

const root = fileURLToPath(new URL("../../..", import.meta.url));
const silent = { debug() {}, info() {}, warn() {}, error() {} };

export interface ServedPage {
  url: string;
  close(): Promise<void>;
}

/** MCP servers as a file has them: `filesystem`, and others. */
async function writeConfig(
  directory: string,
  filesystem: object,
  others: Record<string, object> = {},
): Promise<string> {
  await makeDemoFolder();
  const own = { command: process.execPath, args: [filesystemServer, folder], ...filesystem };
  const path = join(directory, "mcp.json");
  await writeFile(path, JSON.stringify({ mcpServers: { filesystem: own, ...others } }));
  return path;
}

export const questions = {
  files: `List the files in ${folder}, then read notes.txt and tell me what it says.`,
  weather: "What is the weather in Paris?",
  delegation: "Have both readers look at the notes.",
  joke: "Tell me a joke.",
};

const tasks = ["Read notes.txt.", "Read notes.txt once more."];
const readNotes = callText("filesystem_read_text_file", { path: `${folder}/notes.txt` });

const scripts: Record<string, string[]> = {
  [questions.files]: [
    `I'll list the files.\n${callText("filesystem_list_directory", { path: folder })}`,
    readNotes,
    `The file notes.txt says:\n\n> The harbour opens at nine.\n> Bring the blue lantern.`,
  ],
  [questions.weather]: [
    callText("city_get_weather", { city: "Paris" }),
    "It is 21 degrees and sunny in Paris.",
    // To whatever is said next.
    "Nice to meet you, Oskar!",
  ],
  [questions.delegation]: [
    [
      callText("delegate", { agent: "reader", task: tasks[0] }),
      callText("delegate", { agent: "checker", task: tasks[1] }),
    ].join("\n"),
    "Both say that the harbour opens at nine.",
  ],
  [tasks[0]!]: [readNotes, notes],
  [tasks[1]!]: [readNotes, `I read it again.\n\n${notes}`],
  [questions.joke]: ['{"title": "A pause", "points": ["It was holding a fermata."]}'],
};

/** `get_weather` of the server `city` asks for approval. */
export async function servePage(): Promise<ServedPage> {
  const directory = await mkdtemp(join(tmpdir(), "fermata-page-"));
  const city = {
    command: process.execPath,
    args: [join(root, "examples/demo-server.mjs")],
    approval: { get_weather: "always" },
  };
  const path = await writeConfig(
    directory,
    { tools: { allow: ["list_directory", "read_text_file", "search_files"] } },
    { city },
  );
  const host = new McpHost(readMcpConfig(path), {
    log: silent,
    version: "0.0.0-test",
    startPatienceMs: 60_000,
  });
  const reader = { description: "Reads files.", tools: { filesystem: ["read_text_file"] } };
  const server = await startScriptedServer({
    host,
    store: true,
    // One thread waits for no other, whatever else the machine does.
    engine: { parallel: 4, threads: 1 },
    agents: {
      supervisor: "supervisor",
      agents: {
        supervisor: { description: "Hands tasks to the others." },
        reader,
        checker: { ...reader, description: "Reads files again." },
      },
    },
    config: { page: readPageFiles(join(root, "ui/dist")) },
  });
  for (const [question, turns] of Object.entries(scripts)) await server.script(question, turns);
  return {
    url: server.url,
    async close() {
      await server.close();
      await rm(directory, { recursive: true, force: true });
    },
  };
}

export interface CommandPage extends ServedPage {
  /** Kills the process that has the engine. Resolves when another one serves, with its tools. */
  killEngine(): Promise<void>;
}

/** `fermata serve` in processes of its own, nothing scripted; `list_directory` asks for approval. */
export async function servePageByCommand(): Promise<CommandPage> {
  const directory = await mkdtemp(join(tmpdir(), "fermata-page-"));
  const path = await writeConfig(directory, { approval: { list_directory: "always" } });
  const server = await serveCommand(
    `--mcp-config=${path}`,
    `--store=${join(directory, "store.sqlite")}`,
    "--threads=1",
  );
  return {
    url: server.url,
    async killEngine() {
      const workers = [...server.log().matchAll(/"pid":(\d+)[^\n]*worker ready/g)];
      process.kill(Number(workers.at(-1)![1]), "SIGKILL");
      await server.toolsReady();
    },
    async close() {
      await server.stop();
      await rm(directory, { recursive: true, force: true });
    },
  };
}
