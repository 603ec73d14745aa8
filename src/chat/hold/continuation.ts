/** Turns tool outputs into the tokens that continue a held generation. */

import type { ExtendOptions } from "../../engine/types.ts";
import type { PromptBuilder } from "../prompt/prompt.ts";
import type { Round } from "../answer/round.ts";
import { type GeneratedTurn, type Suffix, joinAtEndToken } from "../prompt/suffix.ts";
import type { RenderMessage, RenderScope, Rendering } from "../template/template.ts";
import { fitOutputs } from "./fit-results.ts";
import type { ChatEngine, ChatMessage, ToolOutput } from "../types.ts";
import { escapedMark, unusedCharacters } from "../template/untrusted.ts";

/**
 * `resume`: only the tokens of the results. `rerender`: all tokens, because the template rewrote the history or the
 * round ended before what the engine wrote.
 */
export interface Continuation {
  kind: "resume" | "rerender";
  tokens: Int32Array;
  keepPending: boolean;
  rendering: Rendering;
  messages: readonly RenderMessage[];
  truncatedCount: number;
}

export interface ContinueRequest {
  scope: RenderScope;
  round: Round;
  turn: GeneratedTurn;
  outputs: ToolOutput[];
  /** See `ResumeLimits`. */
  say?: string | undefined;
  /** Replaces `say` when results must be cut. */
  sayIfCut?: string | undefined;
  /** The tokens in the cache; the pending token is not one of them. */
  heldTokens: number;
  maxTokens: number | undefined;
}

interface Draft extends Omit<Continuation, "truncatedCount"> {
  /** The limit of the whole sequence. */
  tokenCount: number;
}

/** Room that is left for the answer, in tokens, or a quarter of the context if that is less. */
const ANSWER_RESERVE = 1024;

export class Continuer {
  readonly #engine: ChatEngine;
  readonly #prompts: PromptBuilder;

  constructor(engine: ChatEngine, prompts: PromptBuilder) {
    this.#engine = engine;
    this.#prompts = prompts;
  }

  /** Results that do not fit are cut. @returns null when nothing fits @throws FermataError template_error */
  async continue(request: ContinueRequest): Promise<Continuation | null> {
    const ifCut = { ...request, say: request.sayIfCut ?? request.say };
    const fitted = await fitOutputs(request.outputs, {
      measure: (outputs) => this.#draft(outputs === request.outputs ? request : ifCut, outputs),
      countTokens: async (text) => {
        const guarded = this.#prompts.template.guardContent(text);
        return (await this.#engine.tokenize(guarded.text, guarded.guard, false)).length;
      },
      comfortable: this.#comfortable(request),
      most: this.#engine.cache.cellsPerSequence - 1,
    });
    return fitted === null ? null : { ...fitted.built, truncatedCount: fitted.truncatedCount };
  }

  /**
   * The known beginning of a continuation, when the output at index `open` is incomplete and those behind it are
   * unknown. It is a guess, because a template may read the unknown part. `no_place`: the template writes results in a
   * way that has no known beginning. `full`: more text would be cut.
   */
  async begin(
    request: ContinueRequest,
    open: number,
  ): Promise<ExtendOptions | "no_place" | "full"> {
    const mark = endMark(request.outputs);
    const outputs = request.outputs.map((output, index) => ({
      ...output,
      content: index < open ? output.content : index === open ? output.content + mark : "",
    }));
    const suffix = await this.#suffix(request, messagesOf(outputs));
    if (suffix === null) return "no_place";
    const { keepPending, text } = joinAtEndToken(suffix.text, request.turn.endToken);
    const end = indexOfMark(text, mark);
    if (end < 0) return "no_place";
    const tokens = await certainTokens(this.#engine, text.slice(0, end), suffix.guard);
    const tokenCount = request.heldTokens + (keepPending ? 1 : 0) + tokens.length;
    return tokenCount > this.#comfortable(request) ? "full" : { tokens, keepPending };
  }

  /** Token limit of a sequence that still needs room for an answer. */
  #comfortable({ maxTokens = Infinity }: ContinueRequest): number {
    const contextSize = this.#engine.cache.cellsPerSequence;
    return contextSize - Math.min(ANSWER_RESERVE, Math.floor(contextSize / 4), maxTokens);
  }

  async #draft(request: ContinueRequest, outputs: ToolOutput[]): Promise<Draft> {
    const { say } = request;
    if (say !== undefined) {
      const said: ChatMessage[] = [...messagesOf(outputs), { role: "user", content: say }];
      const resumed = await this.#resume(request, said);
      if (resumed !== null) return resumed;
      // Without a result there is no other place for it.
      if (outputs.length === 0) return await this.#rerender(request, said);
    }
    const results = messagesOf(say === undefined ? outputs : withLastWords(outputs, say));
    return (await this.#resume(request, results)) ?? (await this.#rerender(request, results));
  }

  async #suffix(
    { scope, round, turn }: ContinueRequest,
    results: ChatMessage[],
  ): Promise<Suffix | null> {
    // What is held is more than the turn.
    if (round.endsEarly) return null;
    return await this.#prompts.suffixes.derive({
      tools: scope.tools,
      templateVariables: scope.templateVariables,
      prompt: round.rendering,
      before: round.before,
      turn,
      after: results,
    });
  }

  async #resume(request: ContinueRequest, results: ChatMessage[]): Promise<Draft | null> {
    const { round, turn, heldTokens } = request;
    const suffix = await this.#suffix(request, results);
    if (suffix === null) return null;
    const { keepPending, text } = joinAtEndToken(suffix.text, turn.endToken);
    const tokens = await this.#engine.tokenize(text, suffix.guard, false);
    return {
      kind: "resume",
      tokens,
      keepPending,
      rendering: suffix.rendering,
      messages: [...round.before, suffix.turn, ...results],
      tokenCount: heldTokens + (keepPending ? 1 : 0) + tokens.length,
    };
  }

  async #rerender({ scope, round, turn }: ContinueRequest, results: ChatMessage[]): Promise<Draft> {
    const before = round.before.map((message) =>
      message.role === "sentinel" ? message.standsFor : message,
    );
    const messages = [...before, turn.message, ...results];
    const { tokens, rendering } = await this.#prompts.render(messages, scope);
    return {
      kind: "rerender",
      tokens,
      keepPending: false,
      rendering,
      messages,
      tokenCount: tokens.length,
    };
  }
}

function withLastWords(outputs: readonly ToolOutput[], say: string): ToolOutput[] {
  return outputs.map((output, index) =>
    index < outputs.length - 1 ? output : { ...output, content: `${output.content}\n\n[${say}]` },
  );
}

export function messagesOf(outputs: readonly ToolOutput[]): ChatMessage[] {
  return outputs.map(({ callId, name, content }) => ({
    role: "tool",
    toolCallId: callId,
    name,
    content,
  }));
}

/** Words without a blank this long are cut in the middle: merges of tokens do not reach far. */
const MAX_WORD = 64;

/** A character that is in none of the texts: the mark for the unknown part of the last one. */
function endMark(outputs: readonly ToolOutput[]): string {
  // Renderings take their marks from the other end of the range.
  const contents = outputs.map(({ content }) => content);
  const [mark = "\ue000"] = unusedCharacters(contents, true);
  return mark;
}

/** Where the mark stands, as it is or as `tojson(ensure_ascii=true)` writes it; -1: nowhere. */
function indexOfMark(text: string, mark: string): number {
  const plain = text.indexOf(mark);
  return plain >= 0 ? plain : text.indexOf(escapedMark(mark));
}

/**
 * The part of the text that stays the same when more text follows. The last word is left out, because its tokens may
 * merge with the next ones. Nothing merges behind a control token.
 */
async function certainTokens(engine: ChatEngine, text: string, guard: string): Promise<Int32Array> {
  const [tokens, shorter] = await Promise.all([
    engine.tokenize(text, guard, false),
    engine.tokenize(withoutLastWord(text), guard, false),
  ]);
  const different = tokens.findIndex((token, index) => token !== shorter[index]);
  const controls = new Set(
    engine.model.specialTokens.filter(({ kind }) => kind === "control").map(({ id }) => id),
  );
  const afterControl = tokens.findLastIndex((token) => controls.has(token)) + 1;
  return tokens.subarray(0, Math.max(different < 0 ? tokens.length : different, afterControl));
}

function withoutLastWord(text: string): string {
  const end = text.trimEnd().length;
  let start = end;
  while (start > 0 && end - start < MAX_WORD && text.charAt(start - 1).trim() !== "") start--;
  return text.slice(0, start).trimEnd();
}
