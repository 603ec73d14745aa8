/** A loaded model and its KV cache: what the other layers generate with. */

import { createHash } from "node:crypto";
import { FermataError } from "../errors.ts";
import type { NativeEngine } from "../native/addon-types.ts";
import { BatchRouter, type StepListener, type TokenIntervalListener } from "./batch-router.ts";
import { FairQueue } from "./fair-queue.ts";
import { EngineGeneration, acknowledgeWindow, tokenLimit } from "./generation.ts";
import { type DeviceUse, deviceUse } from "./fit.ts";
import { type LoadHooks, loadNative } from "./load.ts";
import { awaitNative, callNative, fromThrown } from "./native-errors.ts";
import { defaultMaxQueue } from "./options.ts";
import { RecentMap } from "../recent-map.ts";
import { Turns } from "../turns.ts";
import type {
  CacheInfo,
  EngineOptions,
  EngineFaults,
  EngineStats,
  GenerateRequest,
  Generation,
  Grammar,
  GrammarSource,
  ModelInfo,
  Sampling,
} from "./types.ts";

/** Texts with at least this many characters are tokenized one at a time, because they take seconds. */
const longText = 1024 * 1024;

/** Compiled grammars that are kept for later requests. */
const keptGrammarBytes = 64 * 1024 * 1024;

interface CompiledGrammar {
  grammar: Promise<Grammar>;
  /** 0: it is being compiled. */
  bytes: number;
}

function queueFull(): FermataError {
  return new FermataError("queue_full", "Too many requests are waiting.");
}

interface EngineTerms {
  retain: boolean;
  ownersShare: boolean;
  isShared: boolean;
  maxQueue: number;
  deviceUse: DeviceUse;
}

/**
 * A loaded model and its KV cache. Generations run side by side on one native thread. An engine that
 * generates nothing does not keep the process alive; close it to free its memory.
 */
export class Engine {
  readonly model: ModelInfo;
  readonly cache: CacheInfo;
  readonly deviceUse: DeviceUse;
  readonly #native: NativeEngine;
  readonly #retain: boolean;
  readonly #ownersShare: boolean;
  readonly #router: BatchRouter;
  readonly #grammars = new RecentMap<string, CompiledGrammar>(
    keptGrammarBytes,
    ({ bytes }) => bytes,
  );
  /** At most one takes one of Node's few worker threads: the others are for short texts. */
  readonly #longTexts = new Turns();
  readonly #queue = new FairQueue<EngineGeneration>((generation) => generation.enter());
  readonly #maxQueue: number;
  #nextId = 1;
  #closing: Promise<void> | undefined;

  /** Internal; `router` receives the addon's batches. Use {@link Engine.load}. */
  constructor(
    native: NativeEngine,
    router: BatchRouter,
    { retain, ownersShare, isShared, maxQueue, deviceUse }: EngineTerms,
  ) {
    this.#native = native;
    this.#router = router;
    this.#retain = retain;
    this.#ownersShare = ownersShare;
    this.#maxQueue = maxQueue;
    router.onStart((generation) => this.#queue.remove(generation));
    this.model = { ...native.model, description: describe(native.model) };
    this.cache = { ...native.cache, isShared };
    this.deviceUse = deviceUse;
  }

  /**
   * Checks the file, then loads it.
   * @throws FermataError invalid_option | addon_missing | model_not_found | model_invalid | out_of_memory |
   *   no_threads | cancelled
   */
  static async load(options: EngineOptions, hooks: LoadHooks = {}): Promise<Engine> {
    const router = new BatchRouter();
    const { native, fit } = await loadNative(options, hooks, (batch) => router.accept(batch));
    return new Engine(native, router, {
      retain: options.retainBetweenRequests ?? true,
      ownersShare: options.ownersShareCache ?? false,
      isShared: options.cacheRemote !== undefined,
      maxQueue: options.maxQueue ?? defaultMaxQueue,
      deviceUse: deviceUse(fit),
    });
  }

  /**
   * Tokenizes off the JavaScript thread. Special tokens are recognized where they are spelled, but
   * not where `guard`, one character, stands inside the spelling; guards are removed. `addBos`
   * puts the vocabulary's beginning token first unless the text begins with it.
   */
  async tokenize(text: string, guard = "", addBos = false): Promise<Int32Array> {
    this.#checkOpen();
    const work = () => this.#native.tokenize(text, guard, addBos);
    return await awaitNative(text.length < longText ? work : () => this.#longTexts.take(work));
  }

  /** Bytes of one token, maybe not whole UTF-8; a control token is spelled out. @throws FermataError invalid_value */
  tokenBytes(token: number): Uint8Array {
    return this.#bytesOf(Int32Array.of(token));
  }

  /** Text of the tokens, control tokens spelled out. @throws FermataError invalid_value */
  detokenize(tokens: Int32Array): string {
    return new TextDecoder("utf-8", { ignoreBOM: true }).decode(this.#bytesOf(tokens));
  }

  #bytesOf(tokens: Int32Array): Uint8Array {
    this.#checkOpen();
    return callNative(() => this.#native.detokenize(tokens, true));
  }

  /**
   * Compiles off the JavaScript thread, in bounded time. Equal grammars are compiled once, as long as they are kept.
   * @throws FermataError invalid_grammar (the message says what is wrong) | engine_closed
   */
  async compileGrammar(source: GrammarSource): Promise<Grammar> {
    this.#checkOpen();
    return await awaitNative(() => this.#grammar(source));
  }

  #grammar({ kind, text }: GrammarSource): Promise<Grammar> {
    const key = `${kind} ${text}`;
    const known = this.#grammars.get(key);
    const compiled = known ?? { grammar: this.#native.compileGrammar(kind, text), bytes: 0 };
    this.#grammars.set(key, compiled);
    if (known === undefined)
      compiled.grammar.then(
        ({ bytes }) => this.#grammars.set(key, Object.assign(compiled, { bytes })),
        () => this.#grammars.delete(key),
      );
    return compiled.grammar;
  }

  /**
   * Starts a generation, or queues it when `parallel` generations run.
   * @throws FermataError engine_closed | queue_full | context_length_exceeded | invalid_value
   */
  generate(request: GenerateRequest): Generation {
    this.#checkOpen();
    const {
      signal,
      owner,
      client = owner ?? "",
      cacheSalt,
      watch,
      onPromptLogprobs,
      ...sequence
    } = request;
    const { prompt } = sequence;
    this.#checkPrompt(prompt);
    const generation = new EngineGeneration(
      this.#native,
      prompt,
      signal,
      watch?.(),
      onPromptLogprobs,
    );
    if (signal?.aborted) {
      generation.cancelUnsubmitted();
      return generation;
    }
    const submit = (): number => {
      // The addon takes ids in ascending order only.
      const id = this.#nextId++;
      this.#native.submit({
        ...sequence,
        id,
        maxTokens: tokenLimit(request.maxTokens),
        window: acknowledgeWindow,
        retain: this.#retain,
        salt: saltOf(this.#ownersShare ? undefined : owner, cacheSalt),
      });
      this.#router.add(id, generation);
      return id;
    };
    generation.waitFor({ submit, leave: () => this.#queue.remove(generation) });
    try {
      if (this.#queue.add(client, generation)) generation.submit();
      else if (this.#queue.isOver(client, this.#maxQueue)) throw queueFull();
      else generation.wait("turn");
    } catch (thrown) {
      const error = thrown instanceof FermataError ? thrown : fromThrown(thrown);
      generation.fail(error);
      throw error;
    }
    return generation;
  }

  /** @throws FermataError engine_closed */
  stats(): EngineStats & EngineFaults {
    this.#checkOpen();
    const stats = callNative(() => this.#native.stats());
    return { ...stats, waiting: stats.waiting + this.#queue.size };
  }

  /** "" when every cell and lease is accounted for, else what is wrong. Runs between two steps. */
  async checkIntegrity(): Promise<string> {
    this.#checkOpen();
    return await awaitNative(() => this.#native.checkIntegrity());
  }

  /** Calls `listener` for each step of the inference thread. @returns a function that ends the calls */
  onStep(listener: StepListener): () => void {
    return this.#router.onStep(listener);
  }

  /**
   * Calls `listener` with the milliseconds between two tokens of a generation, without holds.
   * @returns a function that ends the calls
   */
  onTokenInterval(listener: TokenIntervalListener): () => void {
    return this.#router.onTokenInterval(listener);
  }

  /**
   * Ends every generation with `engine_closed` and frees model and cache. Idempotent; resolves when
   * all is freed.
   */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    // Steps go on until it is closed, and whoever listens may ask an engine that answers no more.
    this.#router.mute();
    await this.#native.close();
    this.#router.failAll(closedError());
    for (const generation of this.#queue.clear()) generation.fail(closedError());
  }

  #checkOpen(): void {
    if (this.#closing) throw closedError();
  }

  #checkPrompt(prompt: Int32Array): void {
    if (prompt.length === 0) {
      throw new FermataError("invalid_value", "The prompt has no tokens.", { param: "prompt" });
    }
    const room = this.cache.cellsPerSequence;
    if (prompt.length >= room) {
      throw new FermataError(
        "context_length_exceeded",
        `This model's maximum context length is ${room} tokens, answer included; the prompt is too long: it has ${prompt.length}.`,
        { param: "prompt", size: { promptTokens: prompt.length, contextSize: room } },
      );
    }
  }
}

function closedError(): FermataError {
  return new FermataError("engine_closed", "The engine is closed.");
}

/** Turns biases of texts into biases of their tokens, special tokens included, and banned texts into banned tokens. */
export async function withTextBias(
  sampling: Partial<Sampling> | undefined,
  engine: { tokenize(text: string, guard: string, addBos: boolean): Promise<Int32Array> },
): Promise<Partial<Sampling>> {
  const { textBias = [], logitBias = [], rules, ...others } = sampling ?? {};
  const { bannedTexts = [], ...known } = rules ?? {};
  if (textBias.length === 0 && bannedTexts.length === 0) return sampling ?? {};
  const biases = await Promise.all(
    textBias.map(async ([text, bias]) =>
      Array.from(await engine.tokenize(text, "", false), (token): [number, number] => [
        token,
        bias,
      ]),
    ),
  );
  // A word in the middle of a text has a space before it, and other tokens.
  const spellings = new Set(bannedTexts.flatMap((text) => [text, ` ${text.trimStart()}`]));
  const banned = await Promise.all(
    Array.from(spellings, (text) => engine.tokenize(text, "", false)),
  );
  return {
    ...others,
    logitBias: [...logitBias, ...biases.flat()],
    ...(rules === undefined
      ? {}
      : { rules: { ...known, banned: banned.filter(({ length }) => length > 0) } }),
  };
}

/** 48 bits: nobody knows or guesses those of an owner, which is itself a hash. */
function saltOf(owner = "", cacheSalt = ""): number {
  if (owner === "" && cacheSalt === "") return 0;
  const words = JSON.stringify([owner, cacheSalt]);
  return createHash("sha256").update(words).digest().readUIntBE(0, 6);
}

/**
 * llama.cpp guesses the size from the number of layers: `?B` if it knows none, and a model of 135M is called 256M.
 * Names of mixtures of experts (`30B.A3B`) say more than their count.
 */
export function describe({
  description,
  parameterCount,
}: Pick<ModelInfo, "description" | "parameterCount">): string {
  const isBillions = parameterCount >= 1e9;
  const size = Number((parameterCount / (isBillions ? 1e9 : 1e6)).toFixed(1));
  return description.replace(/ [\d.?]+[KMBT] /, ` ${size}${isBillions ? "B" : "M"} `);
}
