/** Stands between the readers of calls and what is told of them. */

import { isGuidedCall } from "../../guidance/call-beginnings.ts";
import type { CallSyntax } from "../../guidance/call-syntax.ts";
import type { CallSink } from "../formats/readers/reader.ts";

export interface GuidedSink extends CallSink {
  /** @param isGuided it stands in the form that the grammar of a round holds */
  start(name: string, isGuided?: boolean): void;
}

export interface CallBeginning {
  /** From the end of the text before it. */
  text: string;
  /** There is no text between it and the call before. */
  isBehindCall: boolean;
  /** It stands in reasoning that was not closed. */
  inReasoning: boolean;
}

export interface GateOptions {
  syntax: CallSyntax;
  /** Is this a call, by its name? */
  takesCall: (name: string) => boolean;
  /** Of the call that is being read. */
  beginning: () => CallBeginning;
}

export class CallGate implements CallSink {
  readonly #options: GateOptions;
  readonly #sink: GuidedSink;
  /** The last call was one for the grammar, too. */
  #isGuided = false;
  /** What is being read is not taken as a call, and nothing is told of it. */
  isBarred = false;
  /** Of blocks of code, of reasoning amid text, and of calls the grammar may think otherwise than the parser. */
  isUnsure = false;

  constructor(options: GateOptions, sink: GuidedSink) {
    this.#options = options;
    this.#sink = sink;
  }

  start(name: string): void {
    const { syntax, takesCall, beginning } = this.#options;
    this.isBarred = !takesCall(name);
    if (this.isBarred) return;
    const { text, isBehindCall, inReasoning } = beginning();
    const isNext = isBehindCall && this.#isGuided;
    const { isUnsure } = this;
    this.#isGuided = isGuidedCall(syntax, { name, text, isNext, inReasoning, isUnsure });
    if (!this.#isGuided) this.isUnsure = true;
    this.#sink.start(name, this.#isGuided);
  }

  arguments(delta: string): void {
    if (!this.isBarred) this.#sink.arguments(delta);
  }

  end(): void {
    if (!this.isBarred) this.#sink.end();
  }
}
