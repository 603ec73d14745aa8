// A real server on a real socket with the shipped model and a real MCP server; only the choice of
// tokens is scripted, so that a test decides which tools are called. Named as what it is.
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { AddressInfo } from "node:net";
import OpenAI from "openai";
import { Chat } from "../../src/chat/chat.ts";
import type { ChatGeneration, ChatRequest } from "../../src/chat/types.ts";
import { Engine } from "../../src/engine/engine.ts";
import type { EngineOptions, EngineStats } from "../../src/engine/types.ts";
import { McpHost } from "../../src/mcp/host.ts";
import { mcpServerFromCommand } from "../../src/mcp/config.ts";
import type { ServedEmbedder, ServedReranker, ServerConfig } from "../../src/server/services.ts";
import { buildServer } from "../../src/server/app.ts";
import { Approvals } from "../../src/tools/approvals.ts";
import { SqliteStore } from "../../src/store/sqlite/sqlite-store.ts";
import type { Tool } from "../../src/tools/types.ts";
import { type AgentsJson, agentDirectory } from "./agents.ts";
import { modelPath } from "./engine.ts";
import { greedy } from "./sampling.ts";
import { filesystemServer } from "./filesystem-server.ts";

const silent = { debug() {}, info() {}, warn() {}, error() {} };

interface Script {
  tokens: Int32Array;
  /** The model goes on behind it, and masks hold both. */
  goesOn: boolean;
}

/** Puts the script of a user message through the real engine; other requests sample greedily. */
class ScriptedChat {
  readonly #chat: Chat;
  readonly #scripts: Map<string, Script>;

  constructor(chat: Chat, scripts: Map<string, Script>) {
    this.#chat = chat;
    this.#scripts = scripts;
  }

  get mayThink(): boolean {
    return this.#chat.mayThink;
  }
  get takesSeveralCalls(): boolean {
    return this.#chat.takesSeveralCalls;
  }

  get templateSource(): string | null {
    return this.#chat.templateSource;
  }

  get counters(): Chat["counters"] {
    return this.#chat.counters;
  }

  get turnMemory(): Chat["turnMemory"] {
    return this.#chat.turnMemory;
  }

  countPromptTokens(...request: Parameters<Chat["countPromptTokens"]>): Promise<number> {
    return this.#chat.countPromptTokens(...request);
  }

  promptText(...request: Parameters<Chat["promptText"]>): Promise<string> {
    return this.#chat.promptText(...request);
  }

  guardText(text: string): ReturnType<Chat["guardText"]> {
    return this.#chat.guardText(text);
  }

  generate(request: ChatRequest): ChatGeneration {
    const key = [...this.#scripts.keys()].find((text) =>
      request.messages.some((message) => message.role === "user" && message.content === text),
    );
    const script = key === undefined ? undefined : this.#scripts.get(key);
    if (script === undefined) return this.#chat.generate(request);
    // A returning conversation goes on behind the turns that it already has.
    const turns = request.messages.filter((message) => message.role === "assistant").length;
    const { tokens, goesOn: samplesAfterScript } = script;
    return this.#chat.generate({
      ...request,
      sampling: { ...request.sampling, script: afterTurns(tokens, turns), samplesAfterScript },
    });
  }
}

const endOfTurn = "<|im_end|>";
let endToken = -1;

function afterTurns(script: Int32Array, turns: number): Int32Array {
  let rest = script;
  for (let i = 0; i < turns; i++) rest = rest.subarray(rest.indexOf(endToken) + 1);
  return rest;
}

export interface ScriptedServer {
  engine: Engine;
  approvals: Approvals;
  chat: Pick<Chat, "counters">;
  client: OpenAI;
  url: string;
  folder: string;
  /** What the MCP filesystem server is known as. */
  mcpServer: string;
  /** What the model says to this user message, turn by turn. */
  script(userMessage: string, turns: string[]): Promise<void>;
  /** How it begins its answer; it goes on as it likes. */
  begin(userMessage: string, text: string): Promise<void>;
  /** Counters when nothing runs; the rows that the audit saw among them. */
  settledStats(): Promise<EngineStats>;
  close(): Promise<void>;
}

export interface ScriptedServerOptions {
  agents?: AgentsJson;
  /** Beside those of the MCP server. */
  tools?: Tool[];
  embedder?: ServedEmbedder;
  reranker?: ServedReranker;
  engine?: Partial<EngineOptions>;
  /** Files of the folder that the MCP filesystem server may read. Undefined: no MCP server. */
  files?: Record<string, string>;
  /** Keep responses in a file of the folder. */
  store?: boolean;
  /** In place of the filesystem server. Started and closed here. */
  host?: McpHost;
  config?: Partial<ServerConfig>;
  /** Scripts may think: the template shows it, since from there comes whether a model thinks. */
  thinks?: boolean;
}

export async function startScriptedServer(
  options: ScriptedServerOptions = {},
): Promise<ScriptedServer> {
  const folder = await mkdtemp(join(tmpdir(), "fermata-e2e-"));
  for (const [name, text] of Object.entries(options.files ?? {})) {
    await writeFile(join(folder, name), text);
  }
  const host =
    options.files === undefined
      ? (options.host ?? null)
      : new McpHost([mcpServerFromCommand(process.execPath, [filesystemServer, folder])], {
          log: silent,
          version: "0.0.0-test",
          mustStart: true,
        });
  await host?.start();
  const engine = await Engine.load({
    modelPath,
    contextSize: 6144,
    parallel: 8,
    audit: true,
    ...options.engine,
  });
  const [end] = await engine.tokenize(endOfTurn);
  endToken = end ?? -1;
  const scripts = new Map<string, Script>();
  const template = options.thinks ? `${engine.model.chatTemplate}{# <think> #}` : undefined;
  const chat = new ScriptedChat(new Chat(engine, { template }), scripts);
  const { seed: _seed, logitBias: _logitBias, ...sampling } = greedy;
  const more = options.tools ?? [];
  const tools =
    host === null && options.tools === undefined
      ? null
      : {
          tools: () => [...(host?.tools() ?? []), ...more],
          servers: () => host?.servers() ?? [],
          close: async () => {},
        };
  const approvals = new Approvals();
  const agents =
    options.agents === undefined
      ? undefined
      : agentDirectory(options.agents, chat, {
          tools: () => tools?.tools() ?? [],
          contextSize: engine.cache.cellsPerSequence,
        });
  const store = options.store === true ? new SqliteStore(join(folder, "store.sqlite")) : null;
  const app = buildServer(
    {
      chat,
      engine,
      embedder: options.embedder,
      reranker: options.reranker,
      tools,
      agents,
      approvals,
      audit: null,
      store,
      branches: store?.branches,
      model: {
        id: "fermata-small",
        created: 0,
        contextSize: engine.cache.cellsPerSequence,
        parallel: 4,
        vocabularySize: engine.model.vocabularySize,
      },
    },
    { apiKeys: [], sampling, ...options.config },
  );
  await app.listen({ port: 0, host: "127.0.0.1" });
  const url = `http://127.0.0.1:${(app.server.address() as AddressInfo).port}`;

  return {
    engine,
    chat,
    approvals,
    url,
    folder,
    mcpServer: mcpServerFromCommand("", []).id,
    client: new OpenAI({ baseURL: `${url}/v1`, apiKey: "none", maxRetries: 0 }),
    async script(userMessage, turns) {
      const text = turns.map((turn) => turn + endOfTurn).join("");
      scripts.set(userMessage, { tokens: await engine.tokenize(text), goesOn: false });
    },
    async begin(userMessage, text) {
      scripts.set(userMessage, { tokens: await engine.tokenize(text), goesOn: true });
    },
    async settledStats() {
      for (;;) {
        const stats = engine.stats();
        if (stats.running + stats.waiting + stats.held === 0) return stats;
        await new Promise((resolve) => setTimeout(resolve, 10));
      }
    },
    async close() {
      await app.close();
      await host?.close();
      await engine.close();
      await store?.close();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

/** A call as the model writes it. */
export function callText(name: string, args: Record<string, unknown>): string {
  return `<tool_call>\n${JSON.stringify({ name, arguments: args })}\n</tool_call>`;
}
