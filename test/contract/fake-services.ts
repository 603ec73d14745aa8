/** Services whose model is a script: what the wire makes of chat events, without an engine. */

import type { FastifyInstance } from "fastify";
import { defaultSampling } from "../../src/cli/model-files.ts";
import type {
  ChatEvent,
  ChatGeneration,
  ChatRequest,
  PromptRequest,
  ToolCall,
  ToolOutput,
} from "../../src/chat/types.ts";
import type { EngineStep } from "../../src/engine/types.ts";
import { buildServer } from "../../src/server/app.ts";
import type {
  LoadedModel,
  ServedEmbedder,
  ServedReranker,
  ServedModel,
  ServerConfig,
  ServerServices,
} from "../../src/server/services.ts";
import type { BranchStore, OpenStore } from "../../src/store/types.ts";
import { usage } from "./fake-figures.ts";
import { FakeTextEngine } from "./fake-text-engine.ts";
import { Approvals } from "../../src/tools/approvals.ts";
import type { ServerConnector, Tool, ToolProvider, ToolResult } from "../../src/tools/types.ts";

/** An event, a failure, what is waited for before anything is generated, a count of tokens, tokens, or a wait that only cancellation ends. */
export type ScriptStep =
  | ChatEvent
  | { fail: unknown }
  | { prepare: () => Promise<void> }
  | { drawn: number }
  | { tokens: number[] }
  | { hang: true };

export class FakeChat {
  readonly counters = {
    rerenders: 2,
    splices: 0,
    resumes: 0,
    truncatedResults: 0,
    unextendedHolds: 4,
  };
  readonly turnMemory = { used: 300, limit: 1000 };
  readonly requests: ChatRequest[] = [];
  readonly outputs: ToolOutput[][] = [];
  cancelledCount = 0;
  readonly templateSource = "{{ messages }}";
  readonly mayThink = true;
  readonly takesSeveralCalls = true;

  async promptText({
    messages,
    prefill = "",
    openTurn,
  }: Omit<PromptRequest, "owner">): Promise<string> {
    const text = messages.map(({ role, content }) => `[${role}]${content}`).join("");
    return `${text}${prefill === "" ? "" : `+${prefill}`}${openTurn === false ? ", closed" : ""}`;
  }

  guardText(text: string): { text: string; guard: string } {
    return { text, guard: "\u0001" };
  }

  promptTokens = 20;
  readonly counted: PromptRequest[] = [];
  /** Of the next request, when they are to differ. */
  scriptFor: () => ScriptStep[] = () => this.script;
  /** By the user, behind results. */
  readonly said: string[] = [];
  script: ScriptStep[] = [{ type: "content", text: "Hello." }, finish("stop")];

  async countPromptTokens(request: PromptRequest) {
    this.counted.push(request);
    return this.promptTokens;
  }

  generate(request: ChatRequest): ChatGeneration {
    this.requests.push(request);
    const script = this.scriptFor();
    let isReleased = false;
    let resumed: () => void = () => {};
    let onResume = new Promise<void>((resolve) => (resumed = resolve));
    const countCancel = (): void => {
      this.cancelledCount++;
    };
    request.onPrompt?.(Int32Array.of(5, 6, 7));
    async function* events(): AsyncGenerator<ChatEvent, void, void> {
      for (const step of script) {
        if (request.signal?.aborted) break;
        if ("fail" in step) throw step.fail;
        if ("prepare" in step) {
          const work = step.prepare();
          request.onPrepare?.(work);
          await work;
          continue;
        }
        if ("drawn" in step) {
          request.onTokens?.(step.drawn);
          continue;
        }
        if ("tokens" in step) {
          request.onTokens?.(step.tokens.length, Int32Array.from(step.tokens));
          continue;
        }
        if ("hang" in step) {
          await aborted(request.signal);
          break;
        }
        yield step;
        if (step.type === "hold") {
          await Promise.race([onResume, aborted(request.signal)]);
          if (isReleased) {
            yield finish("tool_calls", step.calls);
            return;
          }
          onResume = new Promise<void>((resolve) => (resumed = resolve));
        }
        if (step.type === "finish") return;
      }
      countCancel();
      yield finish("cancelled");
    }
    const iterator = events();
    return {
      [Symbol.asyncIterator]: () => iterator,
      extend: () => {},
      resume: async (outputs, { say } = {}) => {
        this.outputs.push(outputs);
        if (say !== undefined) this.said.push(say);
        resumed();
        return false;
      },
      release: () => {
        isReleased = true;
        resumed();
      },
      cancel: countCancel,
    };
  }
}

export function finish(
  reason: "stop" | "length" | "tool_calls" | "cancelled",
  calls: ToolCall[] = [],
): ChatEvent {
  return { type: "finish", reason, calls, usage };
}

/** Events of a whole call, its arguments in these pieces; default: two. */
export function callEvents(
  call: ToolCall,
  index = 0,
  pieces: readonly string[] = halves(call.arguments),
): ChatEvent[] {
  return [
    { type: "call-start", index, id: call.id, name: call.name },
    ...pieces.map((delta): ChatEvent => ({ type: "call-arguments", index, delta })),
    { type: "call-end", index, call },
  ];
}

function halves(text: string): string[] {
  const middle = Math.ceil(text.length / 2);
  return [text.slice(0, middle), text.slice(middle)];
}

/** All vectors are alike. */
export const fakeReranker: ServedReranker = {
  id: "ranker",
  rank: async (groups) => {
    const scores = groups.flatMap(({ documents }) => documents.map(({ length }) => length));
    return { scores, tokenCount: scores.length };
  },
};

export const fakeEmbedder: ServedEmbedder = {
  id: "vectors",
  dimensions: 8,
  maxTokens: 512,
  vocabularySize: 500,
  embed: async (inputs) => ({
    vectors: inputs.map(() => new Float32Array(8).fill(0.5)),
    tokenCount: inputs.length,
  }),
};

export function fakeTool(name: string, result: ToolResult, server = "files"): Tool {
  return { definition: { name, parameters: { type: "object" } }, server, call: async () => result };
}

export function provider(...tools: Tool[]): ToolProvider {
  return { tools: () => tools, close: async () => {} };
}

export interface World {
  app: FastifyInstance;
  chat: FakeChat;
  text: FakeTextEngine;
  step(step: EngineStep): void;
  tokenInterval(milliseconds: number): void;
}

export function createWorld(
  parts: {
    chat?: FakeChat;
    /** In the place of the script. */
    realChat?: ServerServices["chat"];
    model?: Partial<ServedModel>;
    /** Made of the default model. */
    models?: (standard: LoadedModel) => ServerServices["models"];
    agents?: ServerServices["agents"];
    agentEngines?: ServerServices["agentEngines"];
    tools?: ToolProvider;
    store?: OpenStore;
    approvals?: Approvals;
    audit?: ServerServices["audit"];
    branches?: BranchStore;
    embedder?: ServedEmbedder;
    reranker?: ServedReranker;
    requestedServers?: ServerConnector;
    /** Of the inference thread. */
    stepAgeMs?: () => number;
    /** Requests that have no place yet. */
    waiting?: number;
    config?: Partial<ServerConfig>;
  } = {},
): World {
  const chat = parts.chat ?? new FakeChat();
  const listeners: ((step: EngineStep) => void)[] = [];
  const intervalListeners: ((milliseconds: number) => void)[] = [];
  const text = new FakeTextEngine();
  const services: ServerServices = {
    chat: parts.realChat ?? chat,
    engine: {
      stats: () => ({
        running: 1,
        waiting: parts.waiting ?? 2,
        held: 3,
        cellsUsed: 40,
        cellsRetained: 50,
        cellsFree: 60,
        ramSequences: 2,
        ramBytes: 70,
        ramLimit: 100,
        ramSaves: 5,
        ramRestores: 4,
        ramDrops: 1,
        diskFiles: 3,
        diskBytes: 80,
        diskLimit: 200,
        diskSaves: 6,
        diskRestores: 2,
        diskFull: 7,
        diskDamaged: 8,
        diskForeign: 9,
        diskFailed: 10,
        diskBusy: 11,
        forks: 2,
        forkBytes: 5,
        forkSaves: 4,
        forkUses: 3,
        forkDrops: 1,
        computeThreads: 2,
        stepAgeMs: parts.stepAgeMs?.() ?? 0,
        extendedTokens: 4,
        discardedTokens: 1,
        draftedRows: 6,
        acceptedRows: 5,
        draftModelRows: 9,
        ...usage,
      }),
      onStep: (listener) => listeners.push(listener),
      onTokenInterval: (listener) => intervalListeners.push(listener),
      model: {
        description: "llama 30 Q4_K - Medium",
        architecture: "llama",
        addBos: false,
        bosToken: "<s>",
        eosToken: "</s>",
        specialTokens: [
          { id: 1, text: "<s>", kind: "control" },
          { id: 2, text: "</s>", kind: "control" },
          { id: 3, text: "<tool>", kind: "user_defined" },
        ],
        trainedContext: 2000,
        parameterCount: 30,
        sizeBytes: 60,
        vocabularyType: 2,
        embeddingSize: 12,
        fileType: "Q4_K - Medium",
      },
      ...text,
    },
    embedder: parts.embedder,
    reranker: parts.reranker,
    tools: parts.tools ?? null,
    requestedServers: parts.requestedServers,
    agents: parts.agents,
    agentEngines: parts.agentEngines,
    approvals: parts.approvals ?? new Approvals(),
    audit: parts.audit ?? null,
    store: parts.store ?? null,
    branches: parts.branches,
    model: {
      id: "tiny",
      created: 1_700_000_000,
      contextSize: 1000,
      parallel: 1,
      vocabularySize: 500,
      ...parts.model,
    },
  };
  services.models = parts.models?.({ ...services, sampling: defaultSampling });
  const app = buildServer(services, {
    apiKeys: [],
    sampling: defaultSampling,
    ...parts.config,
  });
  const tokenInterval = (milliseconds: number): void =>
    intervalListeners.forEach((listener) => listener(milliseconds));
  return {
    app,
    chat,
    text,
    tokenInterval,
    step: (step) => listeners.forEach((listener) => listener(step)),
  };
}

export function post(app: FastifyInstance, body: object, headers: Record<string, string> = {}) {
  return app.inject({ method: "POST", url: "/v1/chat/completions", payload: body, headers });
}

/** Payloads of the SSE events, JSON parsed; comments left out. */
export function sseEvents(text: string): unknown[] {
  return text
    .split("\n\n")
    .filter((block) => block.startsWith("data: "))
    .map((block) => block.slice("data: ".length))
    .map((data) => (data === "[DONE]" ? data : (JSON.parse(data) as unknown)));
}

function aborted(signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve) => {
    if (signal?.aborted) resolve();
    signal?.addEventListener("abort", () => resolve(), { once: true });
  });
}
