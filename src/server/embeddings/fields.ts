/** Fields of POST /v1/embeddings. */

import { ignored, optional, required, type FieldTable, type ValuesOf } from "../body/field.ts";
import { promptInputs } from "../body/prompt-inputs.ts";
import { integer, oneOf, text } from "../body/values.ts";

/** As OpenAI has it. */
const maxInputs = 2048;

/** @param dimensions of the model's vectors */
export function embeddingFields(dimensions?: number) {
  return {
    input: required(
      promptInputs(maxInputs, 1),
      `a text, tokens, or a list of up to ${maxInputs} of either`,
    ),
    model: optional(
      text({ remedy: "Send a model's name or leave it out" }),
      "one embedding model is loaded and answers to every name; an unknown one is logged",
    ),
    encoding_format: optional(
      oneOf(["float", "base64"], "format"),
      "base64: of little-endian floats",
      "float",
    ),
    dimensions: optional(
      integer(1, dimensions),
      "the first so many numbers, brought to length 1 again",
    ),
    user: ignored("is not used"),
  } satisfies FieldTable;
}

export type EmbeddingValues = ValuesOf<ReturnType<typeof embeddingFields>>;
