import type {
  NativeEngine,
  NativeEvent,
  NativeExtend,
  NativeResume,
  NativeSubmit,
} from "../../../src/native/addon-types.ts";
import type { EngineUsage, Grammar } from "../../../src/native/types.ts";

export const fakeUsage: EngineUsage = {
  promptTokens: 2,
  cachedTokens: 0,
  resumedTokens: 0,
  prefilledTokens: 2,
  recomputedTokens: 0,
  generatedTokens: 1,
};

export function tokensEvent(
  id: number,
  text: string | Uint8Array,
  ...tokens: number[]
): NativeEvent {
  const bytes = typeof text === "string" ? new TextEncoder().encode(text) : text;
  return { kind: "tokens", at: 0, id, tokens: Int32Array.from(tokens), text: bytes };
}

export function finishedEvent(id: number, text = ""): NativeEvent {
  return {
    kind: "finished",
    id,
    reason: "end",
    text: new TextEncoder().encode(text),
    stopString: "",
    usage: fakeUsage,
  };
}

export function pauseEvent(id: number, pendingToken: boolean): NativeEvent {
  return {
    kind: "tool_call_pause",
    id,
    reason: "end_token",
    text: new Uint8Array(0),
    pendingToken,
    usage: fakeUsage,
  };
}

/** Records what it is asked; events are made by the test. */
export class FakeNativeEngine implements NativeEngine {
  readonly calls: unknown[][] = [];
  readonly submits: NativeSubmit[] = [];
  /** Thrown by the next submit or resume. */
  refusal: { code: string } | undefined;

  readonly model = {
    description: "fake",
    architecture: "fake",
    parameterCount: 1,
    sizeBytes: 1,
    vocabularySize: 100,
    trainedContext: 64,
    vocabularyType: 2,
    embeddingSize: 8,
    fileType: "F16",
    chatTemplate: null,
    bosToken: "",
    eosToken: "",
    addBos: false,
    specialTokens: [],
    isRecurrent: false,
  };
  readonly cache = {
    layout: "streams" as const,
    slots: 2,
    cellsPerSequence: 64,
    cutsAnywhere: true,
    cellsTotal: 128,
    bytes: 1,
  };

  compileGrammar(kind: string, text: string): Promise<Grammar> {
    this.calls.push(["compileGrammar", kind, text]);
    if (text === "")
      return Promise.reject(Object.assign(new Error("empty"), { code: "grammar_invalid" }));
    return Promise.resolve({
      bytes: text.length,
      compileMicroseconds: 1,
      check: () => ({
        accepted: 0,
        complete: false,
        error: "",
        maskMicroseconds: new Float64Array(0),
      }),
    });
  }

  tokenize(text: string): Promise<Int32Array> {
    return Promise.resolve(Int32Array.from(new TextEncoder().encode(text)));
  }
  detokenize(tokens: Int32Array): Uint8Array {
    return Uint8Array.from(tokens);
  }
  submit(request: NativeSubmit): void {
    this.#refuse();
    this.submits.push(request);
  }
  extend(request: NativeExtend): void {
    this.#refuse();
    this.calls.push(["extend", request]);
  }
  resume(request: NativeResume): void {
    this.#refuse();
    this.calls.push(["resume", request]);
  }
  pause(id: number): void {
    this.calls.push(["pause", id]);
  }
  release(id: number): void {
    this.calls.push(["release", id]);
  }
  cancel(id: number): void {
    this.calls.push(["cancel", id]);
  }
  acknowledge(id: number, count: number): void {
    this.calls.push(["acknowledge", id, count]);
  }
  /** Of the rest nothing is asked. */
  stats(): ReturnType<NativeEngine["stats"]> {
    return { waiting: 0 } as ReturnType<NativeEngine["stats"]>;
  }
  checkIntegrity(): Promise<string> {
    return Promise.resolve("");
  }
  close(): Promise<void> {
    this.calls.push(["close"]);
    return Promise.resolve();
  }

  #refuse(): void {
    const refusal = this.refusal;
    this.refusal = undefined;
    if (refusal) throw Object.assign(new Error("refused"), refusal);
  }
}
