/** The part of the engine that chat uses. Type-only. */

import type { GenerateRequest, Generation, Grammar, GrammarSource } from "../engine/types.ts";

export interface ChatModel {
  readonly chatTemplate: string | null;
  readonly bosToken: string;
  readonly eosToken: string;
  readonly addBos: boolean;
  /** Spellings of all CONTROL and USER_DEFINED tokens. */
  readonly specialTokens: readonly {
    readonly id: number;
    readonly text: string;
    readonly kind?: "control" | "user_defined";
  }[];
}

export interface ChatEngine {
  readonly model: ChatModel;
  /** `cellsPerSequence`: tokens one sequence may hold. */
  readonly cache: { readonly cellsPerSequence: number };
  /**
   * A special token is recognized where it is spelled, unless a guard character stands inside its
   * spelling or directly after its first character. Guards are removed.
   */
  tokenize(text: string, guard: string, addBos: boolean): Promise<Int32Array>;
  /** Of a control token, its spelling. */
  tokenBytes(token: number): Uint8Array;
  /** @throws FermataError invalid_grammar */
  compileGrammar(source: GrammarSource): Promise<Grammar>;
  generate(request: GenerateRequest): Generation;
}

/** What chat and tools write to; pino's loggers fit. */
export interface Logger {
  warn(details: object, message: string): void;
}

/** What the turns of a model and the tools that they call are told to. */
export interface ToolLogger extends Logger {
  info(details: object, message: string): void;
  error(details: object, message: string): void;
}
