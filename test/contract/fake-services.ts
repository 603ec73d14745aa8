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
import type {
  EngineStep,
  EngineUsage,
  GenerateRequest,
  Generation,
  GenerationEvent,
  Grammar,
  GrammarSource,
} from "../../src/engine/types.ts";
import { buildServer } from "../../src/server/app.ts";
import type {
  ServedEmbedder,
  ServedReranker,
  ServedModel,
  ServerConfig,
  ServerServices,
} from "../../src/server/services.ts";
import type { BranchStore, ResponseStore, SharedStore } from "../../src/store/types.ts";
import { Approvals } from "../../src/tools/approvals.ts";
import type { ServerConnector, Tool, ToolProvider, ToolResult } from "../../src/tools/types.ts";

export const usage: EngineUsage = {
  promptTokens: 20,
  cachedTokens: 12,
  resumedTokens: 5,
  prefilledTokens: 13,
  recomputedTokens: 0,
  generatedTokens: 7,
};

/** Gauges and counters of an engine that does nothing, without those of `usage`. */
export const idleStats = {
  running: 0,
  waiting: 0,
  held: 0,
  cellsUsed: 0,
  cellsRetained: 0,
  cellsFree: 0,
  ramSequences: 0,
  ramBytes: 0,
  ramLimit: 0,
  ramSaves: 0,
  ramRestores: 0,
  ramDrops: 0,
  diskFiles: 0,
  diskBytes: 0,
  diskLimit: 0,
  diskSaves: 0,
  diskRestores: 0,
  diskFull: 0,
  diskDamaged: 0,
  diskForeign: 0,
  diskFailed: 0,
  diskBusy: 0,
  forks: 0,
  forkBytes: 0,
  forkSaves: 0,
  forkUses: 0,
  forkDrops: 0,
  computeThreads: 2,
  stepAgeMs: 0,
  extendedTokens: 0,
  discardedTokens: 0,
  draftedRows: 0,
  acceptedRows: 0,
};

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

/** A token is a character's code; generates `says`, a token at a time. */
export class FakeTextEngine {
  says = "yes";
  /** What a prompt that begins with this character is refused with. */
  readonly refusals = new Map<string, Error>();
  readonly requests: GenerateRequest[] = [];

  /** Special tokens by their spelling, where a text is nothing else. */
  readonly specials = new Map([
    ["<|fim_prefix|>", 1000],
    ["<|fim_suffix|>", 1001],
    ["<|fim_middle|>", 1002],
    ["<|file_sep|>", 1003],
    ["<|repo_name|>", 1004],
  ]);

  readonly tokenize = async (text: string): Promise<Int32Array> => {
    const special = this.specials.get(text);
    return special === undefined
      ? Int32Array.from(text, (character) => character.charCodeAt(0))
      : Int32Array.of(special);
  };

  readonly detokenize = (tokens: Int32Array): string => String.fromCharCode(...tokens);

  readonly tokenBytes = (token: number): Uint8Array =>
    new TextEncoder().encode(String.fromCharCode(token));

  /** Of what a grammar was asked for; none of them holds anything. */
  readonly grammars: GrammarSource[] = [];

  readonly compileGrammar = async (source: GrammarSource): Promise<Grammar> => {
    this.grammars.push(source);
    const check = () => ({
      accepted: 0,
      complete: false,
      error: "",
      maskMicroseconds: new Float64Array(),
    });
    return { bytes: 0, compileMicroseconds: 0, check };
  };

  readonly generate = (request: GenerateRequest): Generation => {
    this.requests.push(request);
    const refusal = this.refusals.get(this.detokenize(request.prompt.subarray(0, 1)));
    if (refusal !== undefined) throw refusal;
    const said = this.says.slice(0, request.maxTokens);
    const reason = said === this.says ? "end" : "length";
    const { prompt, topLogprobs, promptLogprobs } = request;
    const { length } = prompt;
    async function* events(): AsyncGenerator<GenerationEvent, void, void> {
      yield { type: "progress", done: length - 1, total: length - 1, cached: 1 };
      if (promptLogprobs !== undefined)
        request.onPromptLogprobs?.(
          Array.from(prompt.subarray(1), (token) => {
            const top: [number, number][] = [
              [120, -0.125],
              [token, -0.5],
            ];
            return { token, logprob: -0.5, top: top.slice(0, promptLogprobs) };
          }),
        );
      for (const character of said) {
        const token = character.charCodeAt(0);
        const top: [number, number][] = [[token, -0.25]];
        const logprobs = [{ token, logprob: -0.25, top: top.slice(0, topLogprobs) }];
        yield {
          type: "text",
          text: character,
          tokens: Int32Array.of(token),
          ...(topLogprobs === undefined ? {} : { logprobs }),
        };
      }
      const counts = { ...usage, resumedTokens: 0, promptTokens: prompt.length };
      yield {
        type: "finish",
        reason,
        stopString: "",
        usage: { ...counts, generatedTokens: said.length },
      };
    }
    return Object.assign(events(), {
      id: 1,
      tokens: [],
      pause() {},
      extend() {},
      resume() {},
      release() {},
      cancel() {},
    });
  };
}

export function finish(
  reason: "stop" | "length" | "tool_calls" | "cancelled",
  calls: ToolCall[] = [],
): ChatEvent {
  return { type: "finish", reason, calls, usage };
}

/** Events of a whole call, its arguments in two pieces. */
export function callEvents(call: ToolCall, index = 0): ChatEvent[] {
  const middle = Math.ceil(call.arguments.length / 2);
  return [
    { type: "call-start", index, id: call.id, name: call.name },
    { type: "call-arguments", index, delta: call.arguments.slice(0, middle) },
    { type: "call-arguments", index, delta: call.arguments.slice(middle) },
    { type: "call-end", index, call },
  ];
}

/** All vectors are alike. */
export const fakeReranker: ServedReranker = {
  id: "ranker",
  rank: async (_query, documents) => ({
    scores: documents.map(({ length }) => length),
    tokenCount: documents.length,
  }),
};

export const fakeEmbedder: ServedEmbedder = {
  id: "vectors",
  dimensions: 8,
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
    agents?: ServerServices["agents"];
    agentEngines?: ServerServices["agentEngines"];
    tools?: ToolProvider;
    store?: ResponseStore & { shared?: SharedStore | null };
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
    shared: parts.store?.shared ?? null,
    model: {
      id: "tiny",
      created: 1_700_000_000,
      contextSize: 1000,
      parallel: 1,
      vocabularySize: 500,
      ...parts.model,
    },
  };
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
