/** Chat events to the chunks of a streamed chat completion. */

import {
  type ResponseIdentity,
  usageOfChoices,
  wireFinishReason,
  type WireFinishReason,
  type StopReason,
  stopReasonOf,
  usageSoFar,
  wireUsage,
  type WireUsage,
} from "../answer/completion-parts.ts";
import { CustomInput } from "../body/custom-input.ts";
import type { ChatEvent, ChatUsage, ContentToken } from "../../chat/types.ts";
import type { FermataError } from "../../errors.ts";
import type { ChoiceEvent } from "../answer/choices.ts";
import { errorBody } from "../http/error-replies.ts";
import { jsonMessage, type SseMessage } from "../http/sse.ts";
import type { AnswerStream } from "../http/stream-answer.ts";
import { chatLogprobs, type ChatLogprobs } from "../answer/logprobs.ts";
import type { TokenRecord } from "../answer/token-record.ts";
import type { TokenWishes } from "../body/token-wishes.ts";
import type { PromptProgress, Timings, TokenTimes } from "../answer/token-times.ts";
import type { TimesWanted } from "../body/generation.ts";
import { isToolEvent, toolStatus, type ToolStatus } from "../answer/client-view.ts";

interface ToolCallDelta {
  index: number;
  id?: string;
  type?: "function" | "custom";
  function?: { name?: string; arguments: string };
  custom?: { name?: string; input: string };
  validation_error?: string;
}

interface Delta {
  role?: "assistant";
  content?: string | null;
  reasoning_content?: string;
  tool_calls?: [ToolCallDelta];
  validation_error?: string;
  warnings?: string[];
}

export interface ChatCompletionChunk extends ResponseIdentity {
  object: "chat.completion.chunk";
  choices:
    | []
    | [
        {
          index: number;
          delta: Delta;
          logprobs: ChatLogprobs | null;
          finish_reason: WireFinishReason | null;
          stop_reason?: StopReason;
          /** vLLM's, if they were asked for: of what was generated since the chunk before. */
          token_ids?: number[];
        },
      ];
  usage?: WireUsage | ReturnType<typeof usageSoFar> | null;
  /** vLLM's, of the first chunk of each choice. */
  prompt_token_ids?: number[];
  /** Of a stream that was asked for it: what a tool does while nothing is said. */
  tool_status?: ToolStatus;
  /** llama-server's: of the last chunk, and of each if they were asked for. */
  timings?: Timings | undefined;
  prompt_progress?: PromptProgress;
}

export interface ChunkOptions {
  /** How many choices there are. */
  n: number;
  includeUsage: boolean;
  /** Names of the tools whose input is text. Default: none. */
  customTools?: ReadonlySet<string>;
  /** vLLM's: each chunk has the counts so far. Default false. */
  continuousUsage?: boolean;
  /** Default: none before the end. */
  times?: TimesWanted;
  tokens?: TokenWishes | undefined;
}

/**
 * A streamed chat completion. Of each choice, in order: the role, deltas, an empty delta with the finish
 * reason. After all of them, if asked for, one without choices that carries the usage; then `[DONE]`. A failure
 * is one error object. `times` and `records` are the choices'.
 */
export class ChunkStream implements AnswerStream<ChoiceEvent> {
  readonly #identity: ResponseIdentity;
  readonly #options: ChunkOptions;
  readonly #records: readonly TokenRecord[];
  readonly #wanted: TimesWanted;
  readonly #times: readonly TokenTimes[];
  readonly #choices: ChoiceMapper[];
  readonly #usages = new Map<number, ChatUsage>();

  constructor(
    identity: ResponseIdentity,
    options: ChunkOptions,
    times: readonly TokenTimes[] = [],
    records: readonly TokenRecord[] = [],
  ) {
    this.#options = options;
    this.#records = records;
    this.#wanted = options.times ?? { perToken: false, progress: false };
    this.#times = times;
    this.#identity = identity;
    this.#choices = Array.from({ length: options.n }, () => new ChoiceMapper(options.customTools));
  }

  opening(): SseMessage[] {
    return this.#choices.map((_, index) =>
      jsonMessage({
        ...this.#chunk(index, { delta: { role: "assistant", content: null } }),
        ...(this.#options.tokens?.ids === true
          ? { prompt_token_ids: [...(this.#records[index]?.prompt ?? [])] }
          : {}),
      }),
    );
  }

  waiting(): SseMessage {
    const running = this.#choices.findIndex((_, index) => !this.#usages.has(index));
    return jsonMessage(this.#chunk(Math.max(running, 0), { delta: {} }));
  }

  messages(event: ChoiceEvent): SseMessage[] {
    return this.chunks(event).map(jsonMessage);
  }

  closing(): SseMessage[] {
    return [{ data: "[DONE]" }];
  }

  failure(error: FermataError): SseMessage[] {
    return [jsonMessage(errorBody(error))];
  }

  chunks({ choice, event }: ChoiceEvent): ChatCompletionChunk[] {
    if (isToolEvent(event)) {
      const status = toolStatus(event);
      return status === null
        ? []
        : [{ ...this.#chunk(choice, { delta: {} }), tool_status: status }];
    }
    const times = this.#times[choice];
    if (event.type === "progress") {
      if (!this.#wanted.progress || times === undefined) return [];
      const chunk = this.#chunk(choice, { delta: {} });
      return times.progress(event, this.#wanted).map((told) => ({ ...chunk, ...told }));
    }
    const pieces = this.#choices[choice]?.pieces(event) ?? [];
    const isLast = event.type === "finish" && !this.#options.includeUsage;
    const timings = this.#wanted.perToken || isLast ? { timings: times?.timings } : {};
    const chunks = pieces.map((piece) => ({ ...this.#chunk(choice, piece), ...timings }));
    if (event.type !== "finish") return chunks;
    this.#usages.set(choice, event.usage);
    const [first, ...others] = this.#choices.map((_, index) => this.#usages.get(index));
    if (
      !this.#options.includeUsage ||
      first === undefined ||
      this.#usages.size < this.#choices.length
    )
      return chunks;
    const usage = usageOfChoices([first, ...others.filter((other) => other !== undefined)]);
    const last = { choices: [] as [], usage: wireUsage(usage), timings: this.#times[0]?.timings };
    return [...chunks, { ...this.#head(), ...last }];
  }

  #chunk(index: number, { delta, finish, tokens }: Piece): ChatCompletionChunk {
    const { includeUsage, continuousUsage, tokens: wishes } = this.#options;
    const record = this.#records[index];
    const choice = {
      index,
      delta,
      logprobs: chatLogprobs(tokens ?? null, wishes?.namesAsIds),
      finish_reason: finish === undefined ? null : wireFinishReason(finish.reason),
      ...(finish === undefined ? {} : stopReasonOf(finish)),
      ...(wishes?.ids === true ? { token_ids: record?.take() ?? [] } : {}),
    };
    const usage = continuousUsage === true && record !== undefined ? usageSoFar(record) : null;
    return { ...this.#head(), choices: [choice], ...(includeUsage ? { usage } : {}) };
  }

  #head(): ResponseIdentity & { object: "chat.completion.chunk" } {
    return { ...this.#identity, object: "chat.completion.chunk" };
  }
}

interface Piece {
  delta: Delta;
  finish?: Extract<ChatEvent, { type: "finish" }>;
  tokens?: readonly ContentToken[] | undefined;
}

/**
 * One choice's deltas. Of a call, the first has id, type, name and empty arguments (some clients lose
 * arguments that come with the name), and a call without arguments still streams "{}".
 */
class ChoiceMapper {
  readonly #callsWithArguments = new Set<number>();
  readonly #customTools: ReadonlySet<string> | undefined;
  /** Of the custom tools' calls, by index. */
  readonly #inputs = new Map<number, CustomInput>();

  constructor(customTools: ReadonlySet<string> | undefined) {
    this.#customTools = customTools;
  }

  pieces(event: ChatEvent): Piece[] {
    switch (event.type) {
      case "content":
        return event.text === "" && event.logprobs === undefined
          ? []
          : [{ delta: { content: event.text }, tokens: event.logprobs }];
      case "reasoning":
        return event.text === "" ? [] : [{ delta: { reasoning_content: event.text } }];
      case "call-start": {
        const { index, id, name } = event;
        if (this.#customTools?.has(name) === true) return [this.#customStart(event)];
        const call = { index, id, type: "function" as const, function: { name, arguments: "" } };
        return [{ delta: { tool_calls: [call] } }];
      }
      case "call-arguments":
        return event.delta === "" ? [] : this.#arguments(event.index, event.delta);
      case "call-end":
        return this.#callEnd(event);
      case "finish": {
        const { problem, warnings } = event;
        const delta = {
          ...(problem === undefined ? {} : { validation_error: problem }),
          ...(warnings === undefined ? {} : { warnings }),
        };
        return [{ delta, finish: event }];
      }
      case "progress":
      case "hold":
        return [];
    }
  }

  #customStart({ index, id, name }: Extract<ChatEvent, { type: "call-start" }>): Piece {
    this.#inputs.set(index, new CustomInput());
    const call = { index, id, type: "custom" as const, custom: { name, input: "" } };
    return { delta: { tool_calls: [call] } };
  }

  #callEnd({ index, call }: Extract<ChatEvent, { type: "call-end" }>): Piece[] {
    const input = this.#inputs.get(index);
    const rest =
      input !== undefined
        ? inputPieces(index, input.finish(call.arguments))
        : this.#callsWithArguments.has(index)
          ? []
          : this.#arguments(index, call.arguments || "{}");
    if (call.problem === undefined) return rest;
    const nothing =
      input === undefined ? { function: { arguments: "" } } : { custom: { input: "" } };
    const flag = { index, ...nothing, validation_error: call.problem };
    return [...rest, { delta: { tool_calls: [flag] } }];
  }

  #arguments(index: number, delta: string): Piece[] {
    const input = this.#inputs.get(index);
    if (input !== undefined) return inputPieces(index, input.add(delta));
    this.#callsWithArguments.add(index);
    return [{ delta: { tool_calls: [{ index, function: { arguments: delta } }] } }];
  }
}

function inputPieces(index: number, input: string): Piece[] {
  return input === "" ? [] : [{ delta: { tool_calls: [{ index, custom: { input } }] } }];
}
