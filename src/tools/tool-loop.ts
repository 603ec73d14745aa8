/** Runs calls and resumes the held sequence until the model answers. */

import type {
  ChatEvent,
  ChatGeneration,
  ChatMessage,
  ChatRequest,
  ToolCall,
  ToolDefinition,
  ToolLogger,
} from "../chat/types.ts";
import { EventQueue, pulled, type Sink } from "./event-stream.ts";
import { LoopBudget, loopWords } from "./loop-budget.ts";
import {
  firstState,
  type LoopAction,
  type LoopInput,
  type LoopRules,
  type LoopState,
  nextStep,
} from "./loop-state.ts";
import { ToolRound, type ToolRunsOptions } from "./tool-round.ts";
import { findTool } from "./tool-run.ts";
import type { RunEvent, Tool, ToolEvent, SampleRequest, SampleResult } from "./types.ts";
import { FermataError } from "../errors.ts";

export interface ToolLoopOptions extends Omit<ToolRunsOptions, "signal" | "onOutput"> {
  /** Most rounds with calls. Default 16. */
  maxRounds?: number | undefined;
  /** Tools in the prompt. Default: the tools that Fermata runs. */
  offered?: readonly ToolDefinition[] | undefined;
  /** Calls that the client runs: the generation ends with them after its round's other calls. */
  handsOver?: ((call: ToolCall) => boolean) | undefined;
  /** Most calls. The model reads that the others were not run. Default: no limit. */
  maxCalls?: number | undefined;
  /** Seconds for the whole answer. Then running calls are stopped, and the model reads that. Default: no limit. */
  maxSeconds?: number | undefined;
  /** Receives turns and limits, unless the request has a listener of its own. */
  logger?: ToolLogger | undefined;
}

/** The part of `Chat` that the loop uses. */
export interface ToolLoopChat {
  generate(request: ChatRequest): ChatGeneration;
}

export type ToolLoopRequest = Omit<ChatRequest, "tools" | "toolMode">;

/**
 * Runs `request` with `tools` in the prompt. Yields the events of the chat and of the tools; a `hold` marks the end of
 * a round whose calls run. A call of a tool that only reads starts when its arguments are complete. Its end is reported
 * after the hold; without a hold it is cancelled. The last event is `finish`, with reason `tool_calls` only if the
 * client must run calls. Leaving the loop early cancels the generation and the tools.
 */
export function runToolLoop(
  chat: ToolLoopChat,
  request: ToolLoopRequest,
  tools: readonly Tool[],
  options: ToolLoopOptions = {},
): AsyncGenerator<RunEvent, void, void> {
  return pulled((sink) => new ToolLoop(chat, request, tools, options).run(sink));
}

/** With what the servers of the tools say about them. Many templates take one system message, and that first. */
export function instructedMessages(
  messages: readonly ChatMessage[],
  tools: readonly Tool[],
): ChatMessage[] {
  const byServer = new Map(
    tools.flatMap(({ server, serverInstructions: text }) => (text ? [[server, text]] : [])),
  );
  const said = [...byServer].map(([server, text]) => `# About the tools of ${server}\n\n${text}`);
  if (said.length === 0) return [...messages];
  const [first, ...rest] = messages;
  return first?.role === "system"
    ? [
        {
          role: "system",
          content: [first.content, ...said].filter((text) => text !== "").join("\n\n"),
        },
        ...rest,
      ]
    : [{ role: "system", content: said.join("\n\n") }, ...messages];
}

/** `runToolLoop` for callers with a sink. Use an instance once. */
export class ToolLoop {
  readonly #tools: readonly Tool[];
  readonly #options: ToolLoopOptions;
  readonly #rules: LoopRules;
  readonly #abort = new AbortController();
  readonly #generation: ChatGeneration;
  readonly #events: AsyncIterator<ChatEvent>;
  readonly #oversight: ToolRunsOptions["oversight"];
  readonly #sample: ToolRunsOptions["sample"];
  /** Tools of the client may be called beyond the limits. */
  readonly #callable: readonly string[];
  readonly #told = new EventQueue<ToolEvent>();
  #round: ToolRound;
  #isReading = false;

  constructor(
    chat: ToolLoopChat,
    asked: ToolLoopRequest,
    tools: readonly Tool[],
    options: ToolLoopOptions = {},
  ) {
    const request = { ...asked, messages: instructedMessages(asked.messages, tools) };
    const { maxRounds = 16, maxCalls = Infinity, maxSeconds = Infinity } = options;
    const { handsOver = () => false, logger, oversight } = options;
    const offered = [...(options.offered ?? tools.map((tool) => tool.definition))];
    const { signal } = this.#abort;
    this.#tools = tools;
    this.#options = options;
    this.#oversight = oversight && { denials: new Set<string>(), ...oversight };
    this.#callable = offered
      .map(({ name }) => name)
      .filter((name) => handsOver({ id: "", name, arguments: "" }));
    const { maxTokens = Infinity } = request;
    this.#rules = {
      budget: new LoopBudget({ maxRounds, maxCalls, maxSeconds, maxTokens }, loopWords(request)),
      maxCalls: options.maxCalls,
      hasForm: request.guidance?.document !== undefined,
      signal: request.signal === undefined ? signal : AbortSignal.any([request.signal, signal]),
      logger,
      isOwn: (call) => !handsOver(call),
      mayStartEarly: (call) => {
        const { readOnly = false, approval = "never" } = findTool(call, tools) ?? {};
        return readOnly && approval === "never";
      },
    };
    this.#sample = (asked) => sample({ chat, request, offered }, asked);
    this.#generation = chat.generate({ logger, ...request, tools: offered, toolMode: "internal" });
    this.#events = this.#generation[Symbol.asyncIterator]();
    this.#round = this.#newRound();
  }

  /** Resolves after `finish`. @throws the errors of the generation and of the sink */
  async run(sink: Sink<RunEvent>): Promise<void> {
    let state = firstState;
    try {
      for (;;) {
        const input = await this.#told.drain(this.#nextInput(state), sink);
        if (input === null) return;
        const step = nextStep(state, input, this.#rules);
        for (const action of step.actions) await this.#perform(action, sink);
        state = step.state;
      }
    } finally {
      // A generation can be left only at its next event. The cancel causes that event.
      if (this.#isReading) this.#generation.cancel();
      await this.#events.return?.();
      this.#abort.abort();
    }
  }

  /** Null: the generation has ended. */
  async #nextInput(state: LoopState): Promise<LoopInput | null> {
    if (state.at === "round") {
      const { own, limits } = state;
      const outputs = own.length === 0 ? [] : await this.#round.finish(own, limits);
      return { type: "outputs", outputs };
    }
    this.#isReading = true;
    const next = await this.#events.next();
    this.#isReading = false;
    return next.done === true ? null : next.value;
  }

  async #perform(action: LoopAction, sink: Sink<RunEvent>): Promise<void> {
    switch (action.do) {
      case "tell":
        return await sink(action.event);
      case "start-early":
        return this.#round.startEarly(action.call);
      case "drop-early":
        return await this.#told.drain(this.#round.cancel(), sink);
      case "cancel":
        return this.#generation.cancel();
      case "release":
        this.#round = this.#newRound();
        return this.#generation.release();
      case "resume": {
        const { outputs, mayCall, say } = action;
        const { budget } = this.#rules;
        this.#round = this.#newRound();
        const callable = mayCall ? undefined : this.#callable;
        const ifCut = budget.hasCut
          ? { callable: this.#callable, say: budget.words.last }
          : undefined;
        if (await this.#generation.resume(outputs, { callable, say, ifCut })) budget.cut();
        return;
      }
    }
  }

  #newRound(): ToolRound {
    return new ToolRound(this.#tools, {
      ...this.#options,
      oversight: this.#oversight,
      sample: this.#sample,
      signal: this.#rules.signal,
      deadline: this.#rules.budget.deadline,
      tell: this.#told.push,
      // A notice may follow the last output. When that output is complete, the resume follows at once.
      onOutput: this.#generation.extend.bind(this.#generation),
    });
  }
}

/** A request whose call's server asks. */
interface Caller {
  chat: { generate(request: ChatRequest): ChatGeneration };
  request: Omit<ChatRequest, "tools" | "toolMode">;
  /** The tools in its prompt. */
  offered: readonly ToolDefinition[];
}

/**
 * The server of a tool asks the model while its call runs. The held sequence stays as it is. With the caller's messages the prompt begins as its prompt does, so their cells are
 * shared and only the new messages are computed.
 * @throws FermataError | the reason of `signal`
 */
async function sample(
  { chat, request, offered }: Caller,
  { messages, maxTokens, temperature, stop, withCaller, signal }: SampleRequest,
): Promise<SampleResult> {
  const { templateVariables, owner, client, cacheSalt, logger, watch } = request;
  const { script: _script, ...sampling } = request.sampling;
  const generation = chat.generate({
    messages: withCaller ? [...request.messages, ...messages] : messages,
    tools: withCaller ? [...offered] : [],
    toolMode: "none",
    templateVariables,
    sampling: temperature === undefined ? sampling : { ...sampling, temperature },
    stop,
    maxTokens,
    signal,
    owner,
    client,
    cacheSalt,
    logger,
    watch: watch && (() => watch("sampling")),
  });
  let text = "";
  for await (const event of generation) {
    if (event.type === "content") text += event.text;
    if (event.type !== "finish") continue;
    const { reason, stopString, usage } = event;
    if (reason === "cancelled") signal.throwIfAborted();
    return { text, reason, stopString, tokens: usage.generatedTokens };
  }
  throw new FermataError("internal_error", "The events ended without finish.");
}
