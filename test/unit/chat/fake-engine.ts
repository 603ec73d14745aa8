/** An engine without a model: a token is a character or a special's spelling; rounds are scripted. */

import type { ChatEngine } from "../../../src/chat/types.ts";
import type {
  EngineUsage,
  ExtendOptions,
  GenerateRequest,
  Generation,
  GenerationEvent,
  Grammar,
  GrammarSource,
  ResumeOptions,
} from "../../../src/engine/types.ts";
import { FermataError } from "../../../src/errors.ts";

export interface ScriptedRound {
  text: string;
  /** Default: the end token, held if the request asks for it. */
  end?: "end" | "text_after_call" | "length" | "stop_string" | "never" | "fail";
  endToken?: string;
  /** It is written to its end before a pause reaches it. */
  isAhead?: boolean;
}

export interface FakeEngineOptions {
  template: string;
  specials?: string[];
  /** Default: the vocabulary has none. */
  bosToken?: string;
  contextSize?: number;
  /** Default true. */
  cutsAnywhere?: boolean;
  /** Default false. */
  isShared?: boolean;
  rounds?: (string | ScriptedRound)[];
  /** Tokens an event carries. Default 3. */
  chunk?: number;
}

const FIRST_CHARACTER_ID = 1000;
export class FakeEngine implements ChatEngine {
  readonly model;
  readonly cache: { cellsPerSequence: number; cutsAnywhere: boolean; isShared: boolean };
  readonly rounds: ScriptedRound[];
  readonly chunk: number;
  readonly generations: FakeGeneration[] = [];
  /** What was compiled; the scripts do not follow it. */
  readonly grammars: GrammarSource[] = [];

  constructor(options: FakeEngineOptions) {
    const specials = options.specials ?? [
      "<|im_start|>",
      "<|im_end|>",
      "<|endoftext|>",
      "<tool_call>",
      "</tool_call>",
    ];
    this.model = {
      chatTemplate: options.template,
      bosToken: options.bosToken ?? "",
      eosToken: "<|im_end|>",
      addBos: false,
      description: "fake 1B F16",
      architecture: "fake",
      trainedContext: 100_000,
      vocabularyType: 2,
      embeddingSize: 8,
      fileType: "F16",
      parameterCount: 1000,
      sizeBytes: 4000,
      specialTokens: specials.map((text, id) => ({ id, text })),
    };
    this.cache = {
      cellsPerSequence: options.contextSize ?? 100_000,
      cutsAnywhere: options.cutsAnywhere ?? true,
      isShared: options.isShared ?? false,
    };
    this.chunk = options.chunk ?? 3;
    this.rounds = (options.rounds ?? []).map((round) =>
      typeof round === "string" ? { text: round } : round,
    );
  }

  /** As in a build without llguidance. */
  refusesGrammars = false;

  compileGrammar(source: GrammarSource): Promise<Grammar> {
    this.grammars.push(source);
    if (this.refusesGrammars)
      return Promise.reject(new FermataError("invalid_grammar", "no llguidance"));
    return Promise.resolve({
      bytes: 1,
      compileMicroseconds: 0,
      check: () => ({
        accepted: 0,
        complete: false,
        error: "",
        maskMicroseconds: new Float64Array(),
      }),
    });
  }

  tokenize(text: string, guard: string, _addBos: boolean): Promise<Int32Array> {
    return Promise.resolve(this.tokens(text, guard));
  }

  tokenBytes(token: number): Uint8Array {
    return new TextEncoder().encode(this.spell([token]).replace(/[⟪⟫]/gu, ""));
  }

  /** By the addon's rule: a guard inside a spelling, or after its first character, breaks it. */
  tokens(text: string, guard = ""): Int32Array {
    const ids: number[] = [];
    const specials = [...this.model.specialTokens].sort((a, b) => b.text.length - a.text.length);
    for (let at = 0; at < text.length;) {
      const special = specials.find((token) => text.startsWith(token.text, at));
      const guarded = special?.text.length === 1 && guard !== "" && text.startsWith(guard, at + 1);
      if (special !== undefined && !guarded) {
        ids.push(special.id);
        at += special.text.length;
        continue;
      }
      const character = String.fromCodePoint(text.codePointAt(at) ?? 0);
      if (character !== guard) ids.push(FIRST_CHARACTER_ID + (character.codePointAt(0) ?? 0));
      at += character.length;
    }
    return Int32Array.from(ids);
  }

  /** Specials in double angle brackets: `⟪<|im_end|>⟫` is a token, `<|im_end|>` is text. */
  spell(tokens: Iterable<number>): string {
    let text = "";
    for (const id of tokens) {
      text +=
        id < FIRST_CHARACTER_ID
          ? `⟪${this.specialText(id)}⟫`
          : String.fromCodePoint(id - FIRST_CHARACTER_ID);
    }
    return text;
  }

  specialText(id: number): string {
    return this.model.specialTokens.find((token) => token.id === id)?.text ?? "?";
  }

  generate(request: GenerateRequest): Generation {
    const generation = new FakeGeneration(this, request);
    this.generations.push(generation);
    return generation;
  }

  get last(): FakeGeneration {
    const generation = this.generations.at(-1);
    if (generation === undefined)
      throw new FermataError("internal_error", "Nothing was generated.");
    return generation;
  }
}

export class FakeGeneration implements Generation {
  readonly id: number;
  readonly request: GenerateRequest;
  readonly tokens: number[];
  readonly extensions: ExtendOptions[] = [];
  readonly resumes: ResumeOptions[] = [];
  released = false;
  cancelled = false;
  readonly #engine: FakeEngine;
  /** The longest beginning that an earlier generation has, but for the last token. */
  readonly #cachedTokens: number;
  #pending = false;
  #wake = (): void => {};
  #resumed = false;
  #pauses = false;
  #generated = 0;
  #resumedTokens = 0;

  constructor(engine: FakeEngine, request: GenerateRequest) {
    this.#engine = engine;
    this.id = engine.generations.length + 1;
    this.request = request;
    this.tokens = [...request.prompt];
    this.#cachedTokens = Math.max(
      0,
      ...engine.generations.map(({ tokens }) => reused(request.prompt, tokens)),
    );
    request.signal?.addEventListener("abort", () => this.cancel());
  }

  pause(): void {
    this.#pauses = true;
  }

  extend(options: ExtendOptions): void {
    this.extensions.push(options);
  }

  resume(options: ResumeOptions): void {
    this.resumes.push(options);
    if (this.#pending && !options.keepPending) this.tokens.pop();
    this.tokens.push(...options.tokens);
    this.#resumedTokens += options.tokens.length;
    this.#resumed = true;
    this.#wake();
  }

  release(): void {
    this.released = true;
    this.#wake();
  }

  cancel(): void {
    this.cancelled = true;
    this.#wake();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<GenerationEvent, void, void> {
    for (;;) {
      const round = this.#engine.rounds.shift() ?? { text: "" };
      const said = this.#engine.tokens(round.text);
      const { chunk } = this.#engine;
      for (let at = 0; at < said.length; at += chunk) {
        if (this.cancelled) return yield this.#finish("cancelled");
        const tokens = said.subarray(at, at + chunk);
        this.#push(tokens);
        yield { type: "text", text: this.#engine.spell(tokens).replace(/[⟪⟫]/gu, ""), tokens };
        if (this.#pauses && round.isAhead !== true) break;
      }
      const pauses = this.#pauses && round.isAhead !== true;
      const end = pauses ? "requested" : (round.end ?? "end");
      this.#pauses = false;
      if (end === "fail") throw new FermataError("decode_failed", "The engine failed.");
      if (end === "never") await this.#sleep();
      if (this.cancelled) return yield this.#finish("cancelled");
      if (end === "length" || end === "stop_string") return yield this.#finish(end);
      if (end === "end") this.#push(this.#engine.tokens(round.endToken ?? "<|im_end|>"));
      if (this.request.pause === undefined) return yield this.#finish("end");
      this.#pending = end === "end" || end === "requested";
      this.#resumed = false;
      const reason =
        end === "end" ? "end_token" : end === "requested" ? "requested" : "text_after_call";
      yield { type: "hold", reason, pendingToken: this.#pending, usage: this.#usage };
      if (!this.released && !this.cancelled && !this.#resumed) await this.#sleep();
      if (this.cancelled) return yield this.#finish("cancelled");
      if (this.released) return yield this.#finish("released");
    }
  }

  #push(tokens: Int32Array): void {
    this.tokens.push(...tokens);
    this.#generated += tokens.length;
  }

  #sleep(): Promise<void> {
    return new Promise((resolve) => (this.#wake = resolve));
  }

  get #usage(): EngineUsage {
    const promptTokens = this.request.prompt.length;
    return {
      promptTokens,
      cachedTokens: this.#cachedTokens,
      resumedTokens: this.#resumedTokens,
      prefilledTokens: promptTokens - this.#cachedTokens + this.#resumedTokens,
      recomputedTokens: 0,
      generatedTokens: this.#generated,
    };
  }

  #finish(reason: "end" | "length" | "cancelled" | "released" | "stop_string"): GenerationEvent {
    return { type: "finish", reason, stopString: "", usage: this.#usage };
  }
}

function reused(prompt: Int32Array, tokens: readonly number[]): number {
  const differs = prompt.findIndex((token, index) => token !== tokens[index]);
  return Math.min(differs === -1 ? prompt.length : differs, prompt.length - 1);
}
