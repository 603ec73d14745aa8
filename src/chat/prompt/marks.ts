/**
 * Where other prompts may leave a prompt: lengths in tokens that the engine keeps a way back to, for models that
 * cannot be cut back anywhere, or that it computes for other engines too. Found by rendering a second time, so only
 * for such models and engines.
 */

import { RecentMap } from "../../recent-map.ts";
import { countSystems } from "../template/normalize.ts";
import type { Rendering } from "../template/template.ts";
import type { ChatEngine, ChatMessage } from "../types.ts";
import { withGuard } from "./suffix.ts";

export interface PromptMarks {
  /** Ascending: behind the system message and the tools, before the opening of the answer. */
  lengths: Int32Array;
  /** The opening of the answer. Empty: the template writes none, or it cannot be told apart. */
  opening: Int32Array;
  /** Behind the system message and the tools; 0: there is nothing that others share. */
  shared: number;
}

export interface MarkedPrompt {
  tokens: Int32Array;
  rendering: Rendering;
  messages: readonly ChatMessage[];
}

/** Null: the template refuses them. */
type Render = (
  messages: readonly ChatMessage[],
  generationPrompt: boolean,
) => Promise<Rendering | null>;

/** Fewer are computed as fast as they are found. */
const leastTokens = 32;
/** System messages and openings of answers, whose tokens are remembered. */
const mostTexts = 32;
const none = new Int32Array(0);

export class MarkFinder {
  readonly #engine: ChatEngine;
  readonly #tokens = new RecentMap<string, Int32Array>(mostTexts);

  constructor(engine: ChatEngine) {
    this.#engine = engine;
  }

  async find(prompt: MarkedPrompt, render: Render): Promise<PromptMarks> {
    const shared = Math.max(await this.#shared(prompt, render), 0);
    if (this.#engine.cache.cutsAnywhere !== false) return { lengths: none, opening: none, shared };
    const opening = await this.#opening(prompt, render);
    const lengths = [shared, ...marksBefore(prompt.tokens, opening)];
    const useful = lengths.filter((length) => length >= leastTokens);
    return { lengths: Int32Array.from(new Set(useful)).sort(), opening, shared };
  }

  /** What the prompt has in common with one of the same tools and system messages, and other users. */
  async #shared({ tokens, rendering, messages }: MarkedPrompt, render: Render): Promise<number> {
    const { text, marks } = rendering;
    const beginning = await beginningOf(messages.slice(0, countSystems(messages)), render);
    const begun = beginning === null ? null : withGuard(beginning, marks.guard);
    if (begun === null) return 0;
    const shared = text.slice(0, commonLength(text, begun));
    const known = await this.#tokenize(shared, marks.guard, this.#engine.model.addBos);
    // The last one may be part of a longer token where another text follows.
    return Math.min(commonLength(known, tokens), known.length - 1);
  }

  async #opening({ rendering, messages }: MarkedPrompt, render: Render): Promise<Int32Array> {
    const closed = await render(messages, false);
    const before = closed === null ? null : withGuard(closed, rendering.marks.guard);
    if (before === null || !rendering.text.startsWith(before)) return none;
    return await this.#tokenize(rendering.text.slice(before.length), rendering.marks.guard, false);
  }

  async #tokenize(text: string, guard: string, addBos: boolean): Promise<Int32Array> {
    const key = `${addBos}${guard}${text}`;
    const tokens = this.#tokens.get(key) ?? (await this.#engine.tokenize(text, guard, addBos));
    this.#tokens.set(key, tokens);
    return tokens;
  }
}

/** How prompts with these system messages begin, whatever the user says. Null: that cannot be told. */
export async function beginningOf(
  systems: readonly ChatMessage[],
  render: Render,
): Promise<Rendering | null> {
  const of = async (content: string): Promise<Rendering | null> =>
    await render([...systems, { role: "user", content }], false);
  const [one, two] = [await of("a"), await of("b")];
  const other = one === null || two === null ? null : withGuard(two, one.marks.guard);
  if (one === null || other === null) return null;
  return { ...one, text: one.text.slice(0, commonLength(one.text, other)) };
}

/** The length before `opening`, if the tokens end with it and with something before it. */
export function marksBefore(tokens: Int32Array, opening: Int32Array): number[] {
  const length = tokens.length - opening.length;
  const ends = opening.every((token, index) => tokens[length + index] === token);
  return opening.length > 0 && length > 0 && ends ? [length] : [];
}

function commonLength(one: ArrayLike<unknown>, two: ArrayLike<unknown>): number {
  const most = Math.min(one.length, two.length);
  let length = 0;
  while (length < most && one[length] === two[length]) length += 1;
  return length;
}
