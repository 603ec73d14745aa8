/** Another server as a chat: its answers streamed, its calls judged by `ToolCallBuffer`, its rounds held here. */

import { addUsage } from "../../chat/answer/engine-run.ts";
import { ToolCallBuffer } from "../../chat/answer/tool-call-buffer.ts";
import type {
  ChatEvent,
  ChatGeneration,
  ChatRequest,
  ChatUsage,
  FinishReason,
  ResumeLimits,
  ToolCall,
  ToolOutput,
} from "../../chat/types.ts";
import { noUsage } from "../../engine/generation.ts";
import { FermataError } from "../../errors.ts";
import type { ToolLoopChat } from "../../tools/tool-loop.ts";
import type { EndpointConfig } from "../agents-config.ts";
import type { AgentModel } from "../types.ts";
import { Endpoint, type StreamEnd } from "./endpoint.ts";
import { RemoteTurn } from "./remote-turn.ts";
import { endpointSampling, type RemoteMessage, wireRequest } from "./wire-request.ts";

/** Another server checks the ids of tokens itself. */
const anyVocabulary = 2 ** 31 - 1;

export class RemoteChat implements ToolLoopChat {
  readonly #model: string;
  readonly #endpoint: Endpoint;

  constructor(config: EndpointConfig) {
    this.#model = config.model;
    this.#endpoint = new Endpoint(config);
  }

  static model(config: EndpointConfig): AgentModel {
    return {
      chat: new RemoteChat(config),
      contextSize: config.contextSize,
      vocabularySize: anyVocabulary,
      sampling: endpointSampling,
    };
  }

  countPromptTokens(): Promise<number> {
    const message = "The tokens of an agent with an endpoint of its own cannot be counted here.";
    return Promise.reject(new FermataError("unsupported_value", message, { param: "model" }));
  }

  generate(request: ChatRequest): ChatGeneration {
    return new RemoteGeneration(request, this.#model, this.#endpoint);
  }
}

/** What the caller makes of a hold. */
type Answer =
  | { kind: "resumed"; outputs: ToolOutput[]; say: string | undefined }
  | { kind: "released" }
  | { kind: "cancelled" };

class RemoteGeneration implements ChatGeneration {
  readonly #request: ChatRequest;
  readonly #model: string;
  readonly #endpoint: Endpoint;
  readonly #abort = new AbortController();
  #usage: ChatUsage = noUsage;
  #maxTokens: number | undefined;
  /** Set once a limit is reached. */
  #callable: readonly string[] | undefined;
  #hold: ((answer: Answer) => void) | null = null;

  constructor(request: ChatRequest, model: string, endpoint: Endpoint) {
    this.#request = request;
    this.#model = model;
    this.#endpoint = endpoint;
    this.#maxTokens = request.maxTokens;
  }

  [Symbol.asyncIterator](): AsyncIterator<ChatEvent> {
    return this.#events();
  }

  cancel(): void {
    this.#abort.abort();
    this.#hold?.({ kind: "cancelled" });
  }

  /** The other server takes results whole. */
  extend(): void {}

  /** The other server takes results whole, or refuses them. */
  async resume(
    outputs: ToolOutput[],
    { maxTokens, callable, say }: ResumeLimits = {},
  ): Promise<boolean> {
    if (maxTokens !== undefined) {
      const limit = this.#usage.generatedTokens + maxTokens;
      this.#maxTokens = Math.min(this.#maxTokens ?? limit, limit);
    }
    this.#callable = callable;
    this.#answer({ kind: "resumed", outputs, say });
    return false;
  }

  release(): void {
    this.#answer({ kind: "released" });
  }

  #answer(answer: Answer): void {
    if (this.#hold === null) throw new FermataError("not_held", "There is no hold to answer.");
    this.#hold(answer);
  }

  async *#events(): AsyncGenerator<ChatEvent, void, void> {
    const onAbort = (): void => this.cancel();
    this.#request.signal?.addEventListener("abort", onAbort, { once: true });
    if (this.#request.signal?.aborted === true) this.cancel();
    try {
      yield* this.#rounds();
    } catch (error) {
      if (!this.#abort.signal.aborted) throw error;
      yield this.#finish("cancelled");
    } finally {
      this.#request.signal?.removeEventListener("abort", onAbort);
      this.#abort.abort();
    }
  }

  async *#rounds(): AsyncGenerator<ChatEvent, void, void> {
    const messages: RemoteMessage[] = [...this.#request.messages];
    for (let isFirst = true; ; isFirst = false) {
      const turn = new RemoteTurn();
      const end = yield* this.#receive(turn, messages, isFirst);
      this.#usage = addUsage(this.#usage, turn.usage);
      const finish = this.#judge(turn, end);
      if (finish !== null) return yield finish;

      const { calls } = turn;
      const answered = new Promise<Answer>((resolve) => (this.#hold = resolve));
      yield { type: "hold", calls, usage: this.#usage };
      const answer = await answered;
      this.#hold = null;
      if (answer.kind === "cancelled") return yield this.#finish("cancelled");
      if (answer.kind === "released") return yield this.#finish("tool_calls", calls);
      // Who ran below this one may have spent the rest.
      if (this.#remaining === 0) return yield this.#finish("length");
      messages.push(turn.message);
      for (const { callId, name, content: result } of answer.outputs)
        messages.push({ role: "tool", toolCallId: callId, name, content: result });
      if (answer.say !== undefined) messages.push({ role: "user", content: answer.say });
    }
  }

  async *#receive(
    turn: RemoteTurn,
    messages: readonly RemoteMessage[],
    isFirst: boolean,
  ): AsyncGenerator<ChatEvent, StreamEnd, void> {
    const maxTokens = this.#remaining;
    const body = wireRequest(this.#request, {
      model: this.#model,
      messages,
      maxTokens,
      isFirst,
      callable: this.#callable,
    });
    const chunks = this.#endpoint.stream(body, this.#abort.signal);
    try {
      for (;;) {
        const next = await chunks.next();
        if (next.done === true) {
          yield* turn.end();
          return next.value;
        }
        yield* turn.add(next.value);
      }
    } finally {
      await chunks.return("ended");
    }
  }

  /** @returns null: its calls are run here. @throws FermataError endpoint_failed */
  #judge(turn: RemoteTurn, end: StreamEnd): ChatEvent | null {
    const { calls, finishReason: reason } = turn;
    // Without a reason and without its last word a stream was cut, wherever that was.
    if (reason === null && end === "ended") throw failed("cut its answer off");
    const buffer = new ToolCallBuffer(reason, this.#request.logger);
    for (const call of calls) buffer.addToolCall(call);
    const { toolMode } = this.#request;
    if (buffer.shouldExecuteToolCalls() && toolMode !== "none") {
      if (toolMode === "external") return this.#finish("tool_calls", calls);
      return this.#remaining === 0 ? this.#finish("length") : null;
    }
    if (reason === "error") throw failed("ended its answer with an error");
    if (reason === "content_filter") return this.#finish(reason);
    const wasCut = reason === "length" || buffer.getIncompleteToolCalls().size > 0;
    return this.#finish(wasCut ? "length" : "stop");
  }

  get #remaining(): number | undefined {
    return this.#maxTokens === undefined
      ? undefined
      : Math.max(0, this.#maxTokens - this.#usage.generatedTokens);
  }

  #finish(reason: FinishReason, calls: ToolCall[] = []): Extract<ChatEvent, { type: "finish" }> {
    return { type: "finish", reason, calls, usage: this.#usage };
  }
}

function failed(problem: string): FermataError {
  return new FermataError("endpoint_failed", `The endpoint ${problem}.`);
}
