/** How well documents answer a query, by a model that was trained for it. */

import { FermataError } from "../errors.ts";
import { type CheckedModel, checkGguf } from "./gguf-check.ts";
import { loadTextModel, shortened, TextModel, type TextModelOptions } from "./text-model.ts";

export interface Ranking {
  /** In the order of the documents; a higher one answers better. Their range is the model's. */
  scores: number[];
  /** Of all pairs. */
  tokenCount: number;
}

/** Documents that should answer one query. */
export interface RankedGroup {
  query: string;
  documents: readonly string[];
}

export interface RankOptions {
  /** Documents are cut at so many tokens. */
  documentTokens?: number | undefined;
  /** A document that is too long with its query is cut at its end. Default: it is an error. */
  truncate?: boolean;
  /** Ends the work after the pair that it is at. */
  signal?: AbortSignal;
}

/** A pair is one pass over all its tokens. */
const largestPair = 8192;

/** @throws FermataError model_not_found | model_invalid: it does not rank, too */
export function checkReranker(modelPath: string): CheckedModel {
  const model = checkGguf(modelPath);
  if (model.ranks) return model;
  throw new FermataError(
    "model_invalid",
    `${modelPath} does not rank texts: it has no classifier (cls.weight, cls.output.weight). Take a reranker's file.`,
  );
}

/** A model of its own, beside the engine's. It works on one pair at a time. */
export class Reranker extends TextModel {
  /**
   * @throws FermataError model_not_found | model_invalid (it does not rank, too) | out_of_memory | addon_missing
   */
  static async load(options: TextModelOptions): Promise<Reranker> {
    const kind = { pooling: "", ranks: true } as const;
    const checked = checkReranker(options.modelPath);
    return new Reranker(await loadTextModel(options, checked, largestPair, kind));
  }

  /**
   * The lengths of all pairs are looked at before any is computed.
   * @param field that a document came from, counted through all groups
   * @throws FermataError context_length_exceeded, its `param` being that field | queue_full | the signal's reason
   */
  async rank(
    groups: readonly RankedGroup[],
    field: (index: number) => string,
    { documentTokens = Infinity, truncate = false, signal }: RankOptions = {},
  ): Promise<Ranking> {
    const most = truncate ? this.native.maxTokens : Infinity;
    return await this.request("rankings", signal, async () => {
      const pairs: Int32Array[] = [];
      for (const { query, documents } of groups) {
        signal?.throwIfAborted();
        const [frame, ...whole] = await this.turn(() =>
          this.native.tokenizePairs(query, ["", ...documents]),
        );
        const length = Math.min(most, frame!.length + documentTokens);
        pairs.push(...whole.map((pair) => shortened(pair, frame!, length)));
      }
      pairs.forEach(({ length }, index) => this.#checkLength(length, field(index)));
      const scores: number[] = [];
      for (const pair of pairs) {
        signal?.throwIfAborted();
        const [values] = await this.turn(() => this.native.embed([pair]));
        scores.push(values![0]!);
      }
      return { scores, tokenCount: pairs.reduce((sum, { length }) => sum + length, 0) };
    });
  }

  #checkLength(length: number, param: string): void {
    const { maxTokens } = this.native;
    if (length <= maxTokens) return;
    throw new FermataError(
      "context_length_exceeded",
      `"${param}" and the query have ${length} tokens; the model takes ${maxTokens}. Send shorter texts.`,
      { param },
    );
  }
}
