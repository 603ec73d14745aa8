/** Remembers what a generation said with its tokens, so that the conversation finds them when it comes back. */

import type { Prompt, PromptBuilder } from "../prompt/prompt.ts";
import type { Round } from "./round.ts";
import type { SpliceScope } from "../prompt/splice-store.ts";
import { RoundText } from "./round-text.ts";
import type { ChatMessage } from "../types.ts";

export class TurnMemory {
  readonly #prompts: PromptBuilder;
  readonly #scope: SpliceScope;
  readonly #prompt: Prompt;

  /** @param prompt of the first round */
  constructor(prompts: PromptBuilder, scope: SpliceScope, prompt: Prompt) {
    this.#prompts = prompts;
    this.#scope = scope;
    this.#prompt = prompt;
  }

  /**
   * Call it when a round ended by itself. The last round of several makes the whole answer known too: a client that
   * is not told of the calls sends it back as one message.
   * @param tokens of prompt and answer so far @param endsWithToken the last of them is the end token
   */
  remember(round: Round, tokens: readonly number[], endsWithToken: boolean): void {
    const prompts = this.#prompts;
    // A probe's rendering is none that messages have.
    if (!round.isWhole || round.before.some(({ role }) => role === "sentinel")) return;
    const turn = round.turn(endsWithToken ? prompts.endTokenOf(tokens) : "");
    prompts.turns.add(this.#scope, {
      prompt: round.rendering,
      messageCount: round.before.length,
      turn,
      tokens: Int32Array.from(tokens),
    });
    const messageCount = this.#prompt.messages.length;
    const isFirst = round.before.length === messageCount;
    if (isFirst || round.calls.length > 0) return;
    const before = round.before.slice(messageCount) as ChatMessage[];
    const rounds = [...before, turn.message];
    const prompt = this.#prompt.rendering;
    prompts.turns.addAnswer(this.#scope, {
      prompt,
      messageCount,
      message: oneMessage(rounds),
      rounds,
    });
  }
}

/** As a client sees them that is not told of calls. */
function oneMessage(rounds: readonly ChatMessage[]): Extract<ChatMessage, { role: "assistant" }> {
  const turns = rounds.filter((message) => message.role === "assistant");
  const reasoning = joined(turns.map((turn) => turn.reasoning ?? ""));
  return {
    role: "assistant",
    content: joined(turns.map(({ content }) => content)),
    ...(reasoning === "" ? {} : { reasoning }),
  };
}

function joined(texts: readonly string[]): string {
  const text = new RoundText();
  const parts = texts.map((said) => {
    const part = text.add(said);
    text.endRound();
    return part;
  });
  return parts.join("");
}
