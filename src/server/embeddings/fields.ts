/** Fields of POST /v1/embeddings. */

import { honoured, ignored, type ParameterTable } from "../body/parameter.ts";

export const embeddingParameters: ParameterTable = {
  input: honoured("a text, tokens, or a list of up to 2048 of either"),
  model: honoured(
    "one embedding model is loaded and answers to every name; an unknown one is logged",
  ),
  encoding_format: honoured("`float` and `base64`"),
  dimensions: honoured("the first so many numbers, brought to length 1 again"),
  user: ignored("is not used"),
};
