/** The messages that a run adds to the prompt of the next run: the model's turns and the results that it read. */

import type { ChatMessage, ToolCall } from "../chat/types.ts";
import type { RunEvent } from "./types.ts";

const nothing = { messages: [], calls: [] };

type Turn = Extract<ChatMessage, { role: "assistant" }>;

export class Transcript {
  readonly #messages: ChatMessage[];
  #turn: Turn = newTurn();
  /** Results of the held round, in the order they came. */
  #results = new Map<string, string>();
  #held: readonly ToolCall[];

  /** @param earlier the turns so far, the last one with `calls` that wait for their results */
  constructor(earlier: { messages: readonly ChatMessage[]; calls: readonly ToolCall[] } = nothing) {
    this.#messages = [...earlier.messages];
    this.#held = earlier.calls;
  }

  /** Up to the calls of the held round. */
  get heldMessages(): ChatMessage[] {
    return [...this.#messages];
  }

  add(event: RunEvent): void {
    switch (event.type) {
      case "content":
        this.#closeRound();
        this.#turn.content += event.text;
        return;
      case "reasoning":
        this.#closeRound();
        this.#turn.reasoning = (this.#turn.reasoning ?? "") + event.text;
        return;
      case "call-start":
        return this.#closeRound();
      case "hold":
        // A text that repeats itself is no example for the next answer.
        if (event.calls.length === 0) return void (this.#turn = newTurn());
        this.#turn.toolCalls = event.calls;
        this.#messages.push(this.#turn);
        this.#turn = newTurn();
        this.#held = event.calls;
        return;
      case "tool-end":
        this.#results.set(event.call.id, event.content);
        return;
      default:
    }
  }

  /** The messages so far. A call without a result gets one that says so, because each call needs a result. */
  messages(): ChatMessage[] {
    const messages = [...this.#messages, ...this.#resultsOf(this.#held)];
    const { content, reasoning = "" } = this.#turn;
    if (content.trim() !== "" || (reasoning !== "" && messages.length === 0))
      messages.push(this.#turn);
    return messages;
  }

  /** The model's next text starts the next turn. */
  #closeRound(): void {
    if (this.#held.length === 0) return;
    this.#messages.push(...this.#resultsOf(this.#held));
    this.#held = [];
    this.#results = new Map();
  }

  #resultsOf(calls: readonly ToolCall[]): ChatMessage[] {
    return calls.map(({ id, name }) => ({
      role: "tool",
      toolCallId: id,
      name,
      content: this.#results.get(id) ?? "Error: interrupted before it had a result.",
    }));
  }
}

function newTurn(): Turn {
  return { role: "assistant", content: "" };
}

/** The model goes on, behind the round that was held. */
export function isOfModel({ type }: RunEvent): boolean {
  return type === "content" || type === "reasoning" || type === "call-start";
}
