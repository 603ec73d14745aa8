/**
 * What an MCP server asks while it works on a call: the model (sampling) and the person who looks on (elicitation). The
 * protocol does not say for which call a server asks. So it is taken for the newest that runs, and refused if calls of
 * several owners run.
 */

import type { Client } from "@modelcontextprotocol/sdk/client/index.js";
import {
  type ClientCapabilities,
  CreateMessageRequestSchema,
  type CreateMessageRequest,
  type CreateMessageResult,
  ElicitRequestSchema,
  ElicitRequestURLParamsSchema,
  type ElicitRequest,
  type ElicitResult,
  ErrorCode,
  type McpError,
  UrlElicitationRequiredError,
} from "@modelcontextprotocol/sdk/types.js";
import type { ChatMessage } from "../chat/types.ts";
import type { PersonQuestion, SampleResult, ToolCallContext } from "../tools/types.ts";
import { protocolError } from "./protocol-error.ts";
import type { McpSampling } from "./settings.ts";
import { describeError, plainText } from "./text.ts";

/** The call that a server asks for. */
export type AskingCall = Pick<ToolCallContext, "owner" | "ask" | "sample"> & {
  signal: AbortSignal;
  /** The server waits for an answer: the call is not silent. */
  alive(): void;
};

interface RunningCall extends AskingCall {
  tokensLeft: number;
}

interface ServerRequestsOptions {
  /** Undefined: the server may not ask the model. */
  sampling: McpSampling | undefined;
  elicitation: boolean;
  model: string;
  /** For the log. */
  note(text: string): void;
}

const maxMessages = 100;
const maxQuestion = 4000;
/** Of one call. */
const pagesSchema = ElicitRequestURLParamsSchema.array().max(8);
const maxSchemaBytes = 32 * 1024;
const aliveMs = 1000;
/** MCP's code for a person's no. */
const rejected = -1;

export class McpServerRequests {
  readonly #options: ServerRequestsOptions;
  readonly #running = new Set<RunningCall>();

  constructor(options: ServerRequestsOptions) {
    this.#options = options;
  }

  get capabilities(): ClientCapabilities {
    const { sampling, elicitation } = this.#options;
    return {
      ...(sampling === undefined ? {} : { sampling: sampling.context ? { context: {} } : {} }),
      ...(elicitation ? { elicitation: { form: {}, url: {} } } : {}),
    };
  }

  install(client: Client): void {
    const { sampling, elicitation } = this.#options;
    if (sampling !== undefined)
      client.setRequestHandler(CreateMessageRequestSchema, ({ params }, { signal }) =>
        this.#sample(params, sampling, signal),
      );
    if (elicitation)
      client.setRequestHandler(ElicitRequestSchema, ({ params }, { signal }) =>
        this.#elicit(params, signal),
      );
  }

  /** Gives back what ends it. */
  begin(call: AskingCall): () => void {
    const running = { ...call, tokensLeft: this.#options.sampling?.maxTokens ?? 0 };
    this.#running.add(running);
    return () => this.#running.delete(running);
  }

  async #sample(
    params: CreateMessageRequest["params"],
    { context }: McpSampling,
    cancelled: AbortSignal,
  ): Promise<CreateMessageResult> {
    const call = this.#caller();
    if (typeof call === "string") throw refused(call);
    if (call.sample === undefined) throw refused("the model cannot be asked here");
    if (call.tokensLeft < 1)
      throw refused("the call has drawn all the tokens that it may (sampling.maxTokens)");
    const messages = messagesOf(params);
    const maxTokens = Math.min(Math.max(1, Math.floor(params.maxTokens)), call.tokensLeft);
    // Taken before it is drawn: a server may ask several times at once.
    call.tokensLeft -= maxTokens;
    let result: SampleResult;
    try {
      result = await kept(
        call,
        call.sample({
          messages,
          maxTokens,
          temperature:
            params.temperature === undefined ? undefined : Math.max(0, params.temperature),
          stop: params.stopSequences ?? [],
          withCaller: context && (params.includeContext ?? "none") !== "none",
          signal: AbortSignal.any([call.signal, cancelled]),
        }),
      );
    } catch (error) {
      // Who cancels may have had some drawn.
      if (!call.signal.aborted && !cancelled.aborted) call.tokensLeft += maxTokens;
      throw protocolError(rejected, describeError(error));
    }
    call.tokensLeft += maxTokens - result.tokens;
    return {
      model: this.#options.model,
      role: "assistant",
      content: { type: "text", text: result.text },
      stopReason: stopReasonOf(result),
    };
  }

  /**
   * A call that failed because a person must open pages first, for a login or a payment: whether the person has opened
   * all of them, so that the call may be made again.
   */
  async hasOpenedPages(call: AskingCall, error: unknown): Promise<boolean> {
    if (!this.#options.elicitation || !(error instanceof UrlElicitationRequiredError)) return false;
    const pages = pagesSchema.safeParse(error.elicitations).data ?? [];
    for (const page of pages) {
      if ((await this.#ask(call, page, call.signal)).action !== "accept") return false;
    }
    return pages.length > 0;
  }

  async #elicit(params: ElicitRequest["params"], cancelled: AbortSignal): Promise<ElicitResult> {
    return await this.#ask(this.#caller(), params, cancelled);
  }

  /** `call`: a string says why there is none. */
  async #ask(
    call: AskingCall | string,
    params: ElicitRequest["params"],
    cancelled: AbortSignal,
  ): Promise<ElicitResult> {
    const ask = typeof call === "string" ? undefined : call.ask;
    if (typeof call === "string" || ask === undefined) {
      const reason = typeof call === "string" ? call : "nobody looks on";
      this.#options.note(`its question to a person was cancelled: ${reason}`);
      return { action: "cancel" };
    }
    const question = questionOf(params);
    const answer = await kept(call, ask(question, AbortSignal.any([call.signal, cancelled])));
    if (answer.action !== "accept" || question.schema === undefined)
      return { action: answer.action };
    return { action: "accept", content: answer.content as Record<string, string> };
  }

  /** A string says why there is none. */
  #caller(): RunningCall | string {
    const calls = [...this.#running];
    const call = calls.at(-1);
    if (call === undefined) return "no call of its tools is running";
    if (calls.every(({ owner }) => owner === call.owner)) return call;
    return "calls of several users are running, and it does not say for which it asks";
  }
}

async function kept<Value>(call: AskingCall, work: Promise<Value>): Promise<Value> {
  call.alive();
  const timer = setInterval(call.alive, aliveMs);
  try {
    return await work;
  } finally {
    clearInterval(timer);
    call.alive();
  }
}

/** @throws McpError: text alone is read */
function messagesOf(params: CreateMessageRequest["params"]): ChatMessage[] {
  const { messages, systemPrompt } = params;
  if (messages.length === 0 || messages.length > maxMessages)
    throw protocolError(ErrorCode.InvalidParams, `messages: send 1 to ${maxMessages} messages`);
  const read = messages.map(({ role, content }): ChatMessage => {
    const blocks = Array.isArray(content) ? content : [content];
    const texts = blocks.map((block) => {
      if (block.type === "text") return block.text;
      throw protocolError(
        ErrorCode.InvalidParams,
        `messages: ${block.type} is not read, only text`,
      );
    });
    return { role, content: texts.join("\n") };
  });
  return systemPrompt === undefined ? read : [{ role: "system", content: systemPrompt }, ...read];
}

function stopReasonOf({ reason, stopString }: SampleResult): string {
  if (reason === "length") return "maxTokens";
  return stopString === undefined ? "endTurn" : "stopSequence";
}

/** @throws McpError */
function questionOf(params: ElicitRequest["params"]): PersonQuestion {
  const message = plainText(params.message, maxQuestion);
  if (params.mode === "url") {
    if (!/^https?:$/.test(new URL(params.url).protocol))
      throw protocolError(ErrorCode.InvalidParams, "url: only http and https are opened");
    return { message, url: params.url };
  }
  const { requestedSchema: schema } = params;
  if (JSON.stringify(schema).length > maxSchemaBytes)
    throw protocolError(
      ErrorCode.InvalidParams,
      `requestedSchema: at most ${maxSchemaBytes} bytes`,
    );
  return { message, schema };
}

function refused(reason: string): McpError {
  return protocolError(rejected, `Sampling is refused: ${reason}`);
}
