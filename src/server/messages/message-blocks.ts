/** Chat events to the content blocks of an Anthropic message, and to the events that a stream tells of them. */

import { JsonScanner } from "../../chat/formats/readers/json-scanner.ts";
import { type JsonObject, isJsonObject, parseExactJson } from "../../json.ts";
import type { RunEvent } from "../../tools/types.ts";
import type { ContentBlock } from "./message.ts";

interface BlockEvent {
  type: string;
  index: number;
  [key: string]: unknown;
}

/** Clients send it back with the thinking, and some drop thinking that has none. It signs nothing. */
const thinkingSignature = "ZmVybWF0YQ==";

/** One after the other: what follows a block's kind opens the next block. */
export class MessageBlocks {
  /** So far. */
  readonly content: ContentBlock[] = [];
  /** The last one, until it ends. */
  #open: ContentBlock | null = null;
  /** The call that is open. */
  #call = { index: 0, arguments: "", told: new InputJson() };

  /** @returns what a stream tells */
  add(event: RunEvent): BlockEvent[] {
    switch (event.type) {
      case "content":
        return event.text === "" ? [] : this.#text(event.text);
      case "reasoning":
        return event.text === "" ? [] : this.#thinking(event.text);
      case "call-start": {
        const { index, id, name } = event;
        const begun = this.#begin({ type: "tool_use", id, name, input: {} });
        this.#call = { index, arguments: "", told: new InputJson() };
        return begun;
      }
      case "call-arguments":
        return this.#write(event.index, event.delta);
      case "call-end": {
        // Arguments that came with the call's end only.
        const rest = this.#call.told.isEmpty ? this.#write(event.index, event.call.arguments) : [];
        this.#call.arguments = event.call.arguments;
        return [...rest, ...this.#end()];
      }
      case "finish":
        return this.#end();
      default:
        return [];
    }
  }

  #text(text: string): BlockEvent[] {
    const begun =
      this.#open?.type === "text" ? [] : this.#begin({ type: "text", text: "", citations: null });
    if (this.#open?.type === "text") this.#open.text += text;
    return [...begun, this.#delta({ type: "text_delta", text })];
  }

  #thinking(thinking: string): BlockEvent[] {
    const begun =
      this.#open?.type === "thinking"
        ? []
        : this.#begin({ type: "thinking", thinking: "", signature: "" });
    if (this.#open?.type === "thinking") this.#open.thinking += thinking;
    return [...begun, this.#delta({ type: "thinking_delta", thinking })];
  }

  #write(call: number, delta: string): BlockEvent[] {
    if (this.#open?.type !== "tool_use" || this.#call.index !== call) return [];
    this.#call.arguments += delta;
    const valid = this.#call.told.push(delta);
    return valid === "" ? [] : [this.#delta({ type: "input_json_delta", partial_json: valid })];
  }

  #begin(block: ContentBlock): BlockEvent[] {
    const end = this.#end();
    this.#open = block;
    this.content.push(block);
    return [...end, this.#event("content_block_start", { content_block: { ...block } })];
  }

  #end(): BlockEvent[] {
    const open = this.#open;
    if (open === null) return [];
    this.#open = null;
    const stop = this.#event("content_block_stop");
    if (open.type === "tool_use") open.input = inputOf(this.#call.arguments);
    if (open.type !== "thinking") return [stop];
    open.signature = thinkingSignature;
    return [this.#delta({ type: "signature_delta", signature: thinkingSignature }), stop];
  }

  #delta(delta: object): BlockEvent {
    return { type: "content_block_delta", index: this.content.length - 1, delta };
  }

  #event(type: string, rest: object = {}): BlockEvent {
    return { type, index: this.content.length - 1, ...rest };
  }
}

/** Input is an object on this wire: what a model wrote otherwise is kept as text in one. */
function inputOf(text: string): JsonObject {
  const value = parseExactJson(text.trim() === "" ? "{}" : text);
  return isJsonObject(value) ? value : { arguments: text };
}

/**
 * A call's arguments as they may be streamed: the longest beginning that is one JSON object. Clients
 * parse the pieces, and a character that breaks the JSON cannot be taken back.
 */
class InputJson {
  readonly #scanner = new JsonScanner();
  #state: "before" | "open" | "closed" = "before";

  get isEmpty(): boolean {
    return this.#state === "before";
  }

  /** @returns the part of `delta` that may be sent */
  push(delta: string): string {
    let valid = "";
    for (const character of delta) {
      if (this.#state === "closed") break;
      if (this.#state === "before" && character.trim() === "") continue;
      if (this.#state === "before" && character !== "{") this.#state = "closed";
      else valid += this.#scan(character);
    }
    return valid;
  }

  #scan(character: string): string {
    const result = this.#scanner.feed(character);
    this.#state = result === "more" ? "open" : "closed";
    return result === "more" || result === "end" ? character : "";
  }
}
