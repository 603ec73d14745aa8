/** Texts to vectors, with a model and context of their own. */

import { FermataError } from "../errors.ts";
import type { EmbeddingPooling } from "../native/addon-types.ts";
import { checkGguf } from "./gguf-check.ts";
import { loadTextModel, shortened, TextModel, type TextModelOptions } from "./text-model.ts";

export interface EmbedderOptions extends TextModelOptions {
  /** How a text's tokens become one vector. Default: as the file says. */
  pooling?: EmbeddingPooling | undefined;
}

export interface Embeddings {
  /** Of length 1, `dimensions` numbers each, in the order of the inputs. */
  vectors: Float32Array[];
  /** Of all inputs. */
  tokenCount: number;
}

export interface EmbedOptions {
  /** Texts that are too long are cut at their end. Default: they are an error. */
  truncate?: boolean | undefined;
  /** Texts and tokens are cut at so many tokens; those that the model wants around a text are kept. */
  textTokens?: number | undefined;
  /** Field that an input came from, for errors. Default: `input[i]`. */
  field?: ((index: number) => string) | undefined;
  /** Ends the work after the text that it is at. */
  signal?: AbortSignal | undefined;
}

/**
 * Tokens of a text, which is one pass over all of them. OpenAI's models take as many as `ofReaders`, and its clients split
 * longer texts there. A model that writes, too, computes and keeps what may follow each token: with 49,152 of them in its
 * vocabulary 8192 tokens took 3.5 GB, 2048 took 0.95 GB.
 */
export const largestInput = { ofReaders: 8192, ofWriters: 2048 } as const;

/** A model of its own, beside the engine's, that turns texts into vectors. */
export class Embedder extends TextModel {
  /**
   * @throws FermataError model_not_found | model_invalid (it gives no embeddings, too) | out_of_memory | addon_missing
   */
  static async load(options: EmbedderOptions): Promise<Embedder> {
    const kind = { pooling: options.pooling ?? "", ranks: false } as const;
    const checked = checkGguf(options.modelPath);
    const longest = checked.readsOnly ? largestInput.ofReaders : largestInput.ofWriters;
    return new Embedder(await loadTextModel(options, checked, longest, kind));
  }

  /** Numbers of a vector. */
  get dimensions(): number {
    return this.native.dimensions;
  }

  /** Of one text: what the model was trained for, and `largestInput`, at most. */
  get maxTokens(): number {
    return this.native.maxTokens;
  }

  /** Ids of tokens that inputs may have are below it. */
  get vocabularySize(): number {
    return this.native.vocabularySize;
  }

  /**
   * Texts get the tokens that the model wants around them; tokens are taken as they are.
   * @throws FermataError context_length_exceeded, its `param` being the input's field | queue_full | the signal's reason
   */
  async embed(
    inputs: readonly (string | Int32Array)[],
    options: EmbedOptions = {},
  ): Promise<Embeddings> {
    return await this.request("embeddings", options.signal, () => this.#embed(inputs, options));
  }

  async #embed(
    inputs: readonly (string | Int32Array)[],
    { truncate = false, textTokens, field = (index) => `input[${index}]`, signal }: EmbedOptions,
  ): Promise<Embeddings> {
    const texts = inputs.filter((input) => typeof input === "string");
    const [frame = new Int32Array(), ...tokenized] = await this.turn(() =>
      this.native.tokenize(["", ...texts]),
    );
    const whole = tokenized.values();
    const { maxTokens } = this.native;
    const most = textTokens ?? (truncate ? maxTokens : Infinity);
    const tokens = inputs.map((input) => {
      if (typeof input !== "string") return textTokens === undefined ? input : input.slice(0, most);
      return shortened(whole.next().value ?? new Int32Array(), frame, most);
    });
    tokens.forEach(({ length }, index) => this.#checkLength(length, field(index)));
    const vectors: Float32Array[] = [];
    for (const list of tokens) {
      signal?.throwIfAborted();
      vectors.push(...(await this.turn(() => this.native.embed([list]))));
    }
    return { vectors, tokenCount: tokens.reduce((sum, list) => sum + list.length, 0) };
  }

  #checkLength(length: number, param: string): void {
    const { maxTokens } = this.native;
    if (length > maxTokens) {
      throw new FermataError(
        "context_length_exceeded",
        `"${param}" has ${length} tokens; at most ${maxTokens} are taken. Send shorter texts.`,
        { param },
      );
    }
    if (length === 0) {
      throw new FermataError("invalid_value", `"${param}" has no tokens. Send a text.`, { param });
    }
  }
}
