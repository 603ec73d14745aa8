/** Chat events to the chunks of a streamed chat completion. */

import type { ChatEvent } from "../../chat/types.ts";
import { wireFinishReason, type ResponseIdentity, type WireFinishReason } from "./completion.ts";
import { wireUsage, type WireUsage } from "./usage.ts";

interface ToolCallDelta {
  index: number;
  id?: string;
  type?: "function";
  function: { name?: string; arguments: string };
}

interface Delta {
  role?: "assistant";
  content?: string;
  reasoning_content?: string;
  tool_calls?: [ToolCallDelta];
}

export interface ChatCompletionChunk extends ResponseIdentity {
  object: "chat.completion.chunk";
  choices:
    | []
    | [{ index: 0; delta: Delta; logprobs: null; finish_reason: WireFinishReason | null }];
  usage?: WireUsage | null;
}

/**
 * One stream's chunks, in order: the role, deltas, an empty delta with the finish reason and, if asked
 * for, one without choices that carries the usage. Of a call, the first delta has id, type, name and
 * empty arguments (some clients lose arguments that come with the name), and a call without arguments
 * still streams "{}".
 */
export class ChunkMapper {
  readonly #identity: ResponseIdentity;
  readonly #includeUsage: boolean;
  readonly #callsWithArguments = new Set<number>();

  constructor(identity: ResponseIdentity, includeUsage: boolean) {
    this.#identity = identity;
    this.#includeUsage = includeUsage;
  }

  opening(): ChatCompletionChunk {
    return this.#chunk({ role: "assistant", content: "" });
  }

  chunks(event: ChatEvent): ChatCompletionChunk[] {
    switch (event.type) {
      case "content":
        return event.text === "" ? [] : [this.#chunk({ content: event.text })];
      case "reasoning":
        return event.text === "" ? [] : [this.#chunk({ reasoning_content: event.text })];
      case "call-start": {
        const { index, id, name } = event;
        return [
          this.#chunk({
            tool_calls: [{ index, id, type: "function", function: { name, arguments: "" } }],
          }),
        ];
      }
      case "call-arguments":
        return event.delta === "" ? [] : [this.#argumentsChunk(event.index, event.delta)];
      case "call-end":
        return this.#callsWithArguments.has(event.index)
          ? []
          : [this.#argumentsChunk(event.index, event.call.arguments || "{}")];
      case "finish":
        return this.#closing(event);
      case "progress":
      case "hold":
        return [];
    }
  }

  #closing(finish: Extract<ChatEvent, { type: "finish" }>): ChatCompletionChunk[] {
    const last = this.#chunk({}, wireFinishReason(finish.reason));
    if (!this.#includeUsage) return [last];
    return [last, { ...this.#head(), choices: [], usage: wireUsage(finish.usage) }];
  }

  #argumentsChunk(index: number, delta: string): ChatCompletionChunk {
    this.#callsWithArguments.add(index);
    return this.#chunk({ tool_calls: [{ index, function: { arguments: delta } }] });
  }

  #chunk(delta: Delta, finishReason: WireFinishReason | null = null): ChatCompletionChunk {
    return {
      ...this.#head(),
      choices: [{ index: 0, delta, logprobs: null, finish_reason: finishReason }],
      ...(this.#includeUsage ? { usage: null } : {}),
    };
  }

  #head(): ResponseIdentity & { object: "chat.completion.chunk" } {
    const { id, created, model } = this.#identity;
    return { id, object: "chat.completion.chunk", created, model };
  }
}
