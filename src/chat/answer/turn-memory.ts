/** Remembers what a generation said with its tokens, so that the conversation finds them when it comes back. */

import type { Prompt, PromptBuilder } from "../prompt/prompt.ts";
import type { Round } from "./round.ts";
import type { SpliceRecord, SpliceScope, WithPrompt } from "../prompt/splice-store.ts";
import { RoundText } from "./round-text.ts";
import type { ChatMessage, HeldTurn } from "../types.ts";

/**
 * Call it when a round ended by itself. The last round of several makes the whole answer known too: a client that is
 * not told of the calls sends it back as one message.
 * @param first what the first round continued @param tokens of prompt and answer so far
 * @param endsWithToken the last of them is the end token
 * @returns what another process needs to know of the round; undefined: it is not remembered
 */
export function rememberRound(
  prompts: PromptBuilder,
  scope: SpliceScope,
  first: Prompt,
  {
    round,
    tokens,
    endsWithToken,
  }: { round: Round; tokens: readonly number[]; endsWithToken: boolean },
): HeldTurn | undefined {
  const { rendering, before, calls, isWhole, endsEarly } = round;
  if (!isWhole || endsEarly || first.leadingCount > 0) return undefined;
  // A probe's rendering is none that messages have.
  if (before.some(({ role }) => role === "sentinel")) return undefined;
  const turn = round.turn(endsWithToken ? prompts.endTokenOf(tokens) : "");
  const record = { prompt: rendering, messageCount: before.length, turn };
  prompts.turns.add(scope, { ...record, tokens: Int32Array.from(tokens) });
  const held = { tokens, record };
  const messageCount = first.messages.length;
  if (before.length === messageCount || calls.length > 0) return held;
  const rounds = [...(before.slice(messageCount) as ChatMessage[]), turn.message];
  const message = oneMessage(rounds);
  prompts.turns.addAnswer(scope, { prompt: first.rendering, messageCount, message, rounds });
  return held;
}

/** What an earlier process remembered of the round that it held. */
export function recallRound(
  prompts: PromptBuilder,
  scope: SpliceScope,
  { record, tokens }: HeldTurn,
): void {
  const known = record as Omit<WithPrompt<SpliceRecord>, "tokens">;
  prompts.turns.add(scope, { ...known, tokens: Int32Array.from(tokens) });
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
