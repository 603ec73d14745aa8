/** Fields of POST /v1/embeddings and of POST /embedding. */

import { largestInput } from "../../engine/embedder.ts";
import { ignored, optional, required, type FieldTable, type ValuesOf } from "../body/field.ts";
import { noKeepAlive } from "../body/keep-alive.ts";
import { promptInputs } from "../body/prompt-inputs.ts";
import { integer, oneOf, text } from "../body/values.ts";

/** As OpenAI has it. */
const maxInputs = 2048;

const inputs = promptInputs(maxInputs, 1);
const inputsSay = `a text, tokens, or a list of up to ${maxInputs} of either, each of at most ${largestInput.ofReaders} tokens (${largestInput.ofWriters} where the model writes text, too), or fewer if the model was trained for fewer`;
const model = optional(
  text({ remedy: "Send a model's name or leave it out" }),
  "one embedding model is loaded and answers to every name; an unknown one is logged",
);

/** @param dimensions of the model's vectors */
export function embeddingFields(dimensions?: number) {
  return {
    input: required(inputs, inputsSay),
    model,
    encoding_format: optional(
      oneOf(["float", "base64"], "format"),
      "base64: of little-endian floats",
      "float",
    ),
    dimensions: optional(
      integer(1, dimensions),
      "the first so many numbers, brought to length 1 again",
    ),
    truncate_prompt_tokens: optional(
      integer(-1),
      "vLLM's: so many tokens of an input are read; -1: as many as the model takes",
    ),
    user: ignored("is not used"),
    keep_alive: noKeepAlive,
  } satisfies FieldTable;
}

export type EmbeddingValues = ValuesOf<ReturnType<typeof embeddingFields>>;

/** llama-server's. */
export const nativeEmbeddingFields = {
  content: optional(inputs, `${inputsSay}; required`),
  input: optional(inputs, "in the place of `content`"),
  model,
  embd_normalize: optional(integer(2, 2), "vectors have length 1"),
  keep_alive: noKeepAlive,
} satisfies FieldTable;
