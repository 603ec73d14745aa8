/**
 * What a template writes after an assistant's turn whose tokens exist already. Appending exactly that
 * to those tokens is the whole cost of a tool round. Null when the template rewrites what came before.
 */

import type { ReasoningMarkers } from "../../guidance/types.ts";
import type {
  ChatTemplate,
  RenderMessage,
  RenderScope,
  Rendering,
  SentinelMessage,
} from "../template/template.ts";
import type { ChatMessage } from "../types.ts";

/** The turn that was generated, as text. */
export interface GeneratedTurn {
  message: Extract<ChatMessage, { role: "assistant" }>;
  /** All generated text of the turn, markers included, end token excluded. */
  raw: string;
  /** Spelling of the end token it ended with, or "". */
  endToken: string;
}

export interface SuffixRequest extends RenderScope {
  /** Rendering of `before` with generation prompt: what the turn continued. */
  prompt: Rendering;
  before: readonly RenderMessage[];
  turn: GeneratedTurn;
  /** Follows the turn. */
  after: readonly ChatMessage[];
  /** Rendering of all three with generation prompt, if it is at hand. */
  whole?: Rendering | undefined;
}

/**
 * `sentinel`: found where a stand-in for the content ends. `anchor`: found at the end token the
 * template writes. `exact`: the template writes the turn as it was generated.
 */
export type SuffixStrategy = "sentinel" | "exact" | "anchor";

export interface Suffix {
  text: string;
  guard: string;
  strategy: SuffixStrategy;
  /** Rendering of everything, the suffix at its end: the next turn's `prompt`. */
  rendering: Rendering;
  /** The turn as that rendering has it: the next turn's `before` goes on with it. */
  turn: RenderMessage;
}

export class SuffixDeriver {
  readonly #template: ChatTemplate;
  readonly #reasoning: ReasoningMarkers | null;
  readonly #eosToken: string;
  /** What worked last goes first. */
  #order: SuffixStrategy[] = ["sentinel", "exact", "anchor"];

  constructor(template: ChatTemplate, reasoning: ReasoningMarkers | null, eosToken: string) {
    this.#template = template;
    this.#reasoning = reasoning;
    this.#eosToken = eosToken;
  }

  async derive(request: SuffixRequest): Promise<Suffix | null> {
    const whole = request.whole ?? (await this.#tryRender(request, request.turn.message));
    for (const strategy of this.#order) {
      const suffix = await this.#try(strategy, request, whole);
      if (suffix === null) continue;
      this.#order = [strategy, ...this.#order.filter((other) => other !== strategy)];
      return suffix;
    }
    return null;
  }

  async #try(
    strategy: SuffixStrategy,
    request: SuffixRequest,
    whole: Rendering | null,
  ): Promise<Suffix | null> {
    if (strategy === "sentinel") return await this.#bySentinel(request, whole);
    const prompt = whole === null ? null : withGuard(request.prompt, whole.marks.guard);
    if (whole === null || prompt === null || !whole.text.startsWith(prompt)) return null;
    const cut =
      strategy === "exact"
        ? cutAfterRaw(request.turn, whole, prompt.length)
        : await this.#cutAtAnchor(request, whole, prompt);
    if (cut === null) return null;
    return {
      text: whole.text.slice(cut),
      guard: whole.marks.guard,
      strategy,
      rendering: whole,
      turn: request.turn.message,
    };
  }

  async #bySentinel(request: SuffixRequest, whole: Rendering | null): Promise<Suffix | null> {
    const reasoning = request.turn.message.reasoning?.trim() ?? "";
    const standsFor = request.turn.message;
    const sentinel: SentinelMessage = {
      role: "sentinel",
      withReasoning: reasoning !== "",
      standsFor,
    };
    const probe = await this.#tryRender(request, sentinel);
    const prompt = probe === null ? null : withGuard(request.prompt, probe.marks.guard);
    if (probe === null || prompt === null) return null;
    const at = onlyIndexOf(probe.text, probe.marks.content);
    if (at < 0 || !probe.text.startsWith(prompt) || at < prompt.length) return null;
    const gap = probe.text.slice(prompt.length, at);
    if (!this.#explains(gap, probe.marks.reasoning, sentinel, request.turn.raw)) return null;

    const text = probe.text.slice(at + probe.marks.content.length);
    const guard = probe.marks.guard;
    // A template that refuses the real turn (arguments it cannot read) still takes the stand-in.
    if (whole === null)
      return { text, guard, strategy: "sentinel", rendering: probe, turn: sentinel };
    const realPrompt = withGuard(request.prompt, whole.marks.guard);
    const agrees =
      realPrompt !== null && whole.text.startsWith(realPrompt) && whole.text.endsWith(text);
    if (!agrees || whole.marks.guard !== guard) return null;
    return { text, guard, strategy: "sentinel", rendering: whole, turn: request.turn.message };
  }

  /** What the template puts between prompt and content must be what was generated there. */
  #explains(gap: string, reasoningMark: string, sentinel: SentinelMessage, raw: string): boolean {
    if (!sentinel.withReasoning) return gap === "" || raw.startsWith(gap);
    const at = onlyIndexOf(gap, reasoningMark);
    if (at < 0) return false;
    const opening = gap.slice(0, at).trim();
    return opening === "" || opening === this.#reasoning?.open;
  }

  /** The last end token before what follows the turn; contents cannot spell one, guards stand in them. */
  async #cutAtAnchor(
    request: SuffixRequest,
    whole: Rendering,
    prompt: string,
  ): Promise<number | null> {
    const { turn } = request;
    const turnOnly = await this.#tryRender({ ...request, after: [] }, turn.message, false);
    if (turnOnly === null || turnOnly.marks.guard !== whole.marks.guard) return null;
    if (!whole.text.startsWith(turnOnly.text)) return null;
    const end = turn.endToken === "" ? this.#eosToken : turn.endToken;
    const cut = end === "" ? -1 : turnOnly.text.lastIndexOf(end);
    if (cut < prompt.length) return null;
    const written = turnOnly.text.slice(prompt.length, cut).replaceAll(whole.marks.guard, "");
    const isComplete = [turn.message.content, turn.message.reasoning ?? ""].every((text) =>
      written.includes(text.trim()),
    );
    return isComplete ? cut : null;
  }

  async #tryRender(
    request: SuffixRequest,
    turn: RenderMessage,
    generationPrompt = true,
  ): Promise<Rendering | null> {
    const messages = [...request.before, turn, ...request.after];
    return await this.#template.tryRender(messages, request, generationPrompt);
  }
}

/** The rendering's text as it would be with another guard; null if that cannot be told. */
export function withGuard(rendering: Rendering, guard: string): string | null {
  if (rendering.marks.guard === guard) return rendering.text;
  if (rendering.text.includes(guard)) return null;
  return rendering.text.replaceAll(rendering.marks.guard, guard);
}

function cutAfterRaw(turn: GeneratedTurn, whole: Rendering, start: number): number | null {
  let at = start;
  for (const character of turn.raw) {
    while (whole.text.startsWith(whole.marks.guard, at)) at += whole.marks.guard.length;
    if (!whole.text.startsWith(character, at)) return null;
    at += character.length;
  }
  return at;
}

/**
 * A turn's end token is kept where the template writes the same; only the rest of the suffix is new.
 * Else it is dropped and the template's own takes its place.
 */
export function joinAtEndToken(
  suffix: string,
  endToken: string,
): { keepPending: boolean; text: string } {
  const keepPending = endToken !== "" && suffix.startsWith(endToken);
  return { keepPending, text: keepPending ? suffix.slice(endToken.length) : suffix };
}

function onlyIndexOf(text: string, mark: string): number {
  const at = text.indexOf(mark);
  return at === text.lastIndexOf(mark) ? at : -1;
}
