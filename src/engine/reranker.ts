/** How well documents answer a query, by a model that was trained for it. */

import { FermataError } from "../errors.ts";
import type { NativeEmbedder } from "../native/addon-types.ts";
import { type CheckedModel, checkGguf } from "./gguf-check.ts";
import { loadNativeEmbedder } from "./load-embedder.ts";
import { fromThrown } from "./native-errors.ts";
import { physicalCores } from "./options.ts";
import { Turns } from "./turns.ts";

export interface RerankerOptions {
  modelPath: string;
  /** Default: number of physical cores. */
  threads?: number | undefined;
  gpuLayers?: number | undefined;
}

export interface Ranking {
  /** In the order of the documents; a higher one answers better. Their range is the model's. */
  scores: number[];
  /** Of all pairs. */
  tokenCount: number;
}

/** A pair is one pass over all its tokens, whose memory grows with their number. */
const largestPair = 8192;
const defaultPair = 512;

/** Requests that may wait. */
const maxWaiting = 64;

/** @throws FermataError model_not_found | model_invalid: it does not rank, too */
export function checkReranker(modelPath: string): CheckedModel {
  const model = checkGguf(modelPath);
  if (model.ranks) return model;
  throw new FermataError(
    "model_invalid",
    `${modelPath} does not rank texts: it has no classifier (cls.weight, cls.output.weight). Take a reranker's file.`,
  );
}

/** A model of its own, beside the engine's. It works on one pair at a time, of each request in turn. */
export class Reranker {
  readonly #native: NativeEmbedder;
  readonly #turns = new Turns();
  #waiting = 0;

  /** For a model of the addon. Use {@link Reranker.load}. */
  constructor(native: NativeEmbedder) {
    this.#native = native;
  }

  /**
   * @throws FermataError model_not_found | model_invalid (it does not rank, too) | out_of_memory | addon_missing
   */
  static async load({ modelPath, threads, gpuLayers }: RerankerOptions): Promise<Reranker> {
    const { trainedContext = defaultPair, positions = largestPair } = checkReranker(modelPath);
    const native = await loadNativeEmbedder({
      modelPath,
      maxTokens: Math.min(trainedContext, positions, largestPair),
      threads: threads ?? physicalCores(),
      gpuLayers: gpuLayers ?? 0,
      pooling: "",
      ranks: true,
    });
    return new Reranker(native);
  }

  /**
   * @param signal ends the work after the pair that it is at
   * @param nameOf the field that a document came from
   * @throws FermataError context_length_exceeded, its `param` being that field | queue_full | the signal's reason
   */
  async rank(
    query: string,
    documents: readonly string[],
    signal?: AbortSignal,
    nameOf = (index: number): string => `documents[${index}]`,
  ): Promise<Ranking> {
    if (this.#waiting >= maxWaiting)
      throw new FermataError("queue_full", "Too many requests for rankings are waiting.");
    this.#waiting += 1;
    try {
      return await this.#rank(query, documents, signal, nameOf);
    } catch (thrown) {
      signal?.throwIfAborted();
      throw fromThrown(thrown);
    } finally {
      this.#waiting -= 1;
    }
  }

  async #rank(
    query: string,
    documents: readonly string[],
    signal: AbortSignal | undefined,
    nameOf: (index: number) => string,
  ): Promise<Ranking> {
    const pairs = await this.#turns.take(() => this.#native.tokenizePairs(query, [...documents]));
    pairs.forEach(({ length }, index) => this.#checkLength(length, nameOf(index)));
    const scores: number[] = [];
    for (const pair of pairs) {
      signal?.throwIfAborted();
      const [values] = await this.#turns.take(() => this.#native.embed([pair]));
      scores.push(values![0]!);
    }
    return { scores, tokenCount: pairs.reduce((sum, { length }) => sum + length, 0) };
  }

  #checkLength(length: number, param: string): void {
    const { maxTokens } = this.#native;
    if (length <= maxTokens) return;
    throw new FermataError(
      "context_length_exceeded",
      `"${param}" and the query have ${length} tokens; the model takes ${maxTokens}. Send shorter texts.`,
      { param },
    );
  }
}
