/** Fields of POST /v1/completions. */

import { constraints } from "../body/constraints.ts";
import { llamaSamplers } from "../body/llama-samplers.ts";
import { honoured, ignored, refused, type ParameterTable } from "../body/parameter.ts";

export const completionParameters: ParameterTable = {
  model: honoured("one model is loaded and answers to every name; an unknown one is logged"),
  prompt: honoured("a text, tokens, or a list of either; special tokens are recognized"),
  n: honoured("up to 128 for each prompt; choice `i` draws with `seed + i`"),
  best_of: refused(
    "asks for answers that are thrown away",
    "Send n and choose yourself",
    (value) => value === 1,
  ),
  echo: honoured("not together with `logprobs`: the prompt's own are not computed"),
  suffix: refused(
    "needs a model that was trained to fill in the middle",
    "Leave it out",
    (value) => value === "",
  ),
  logprobs: honoured("0 to 20"),
  max_tokens: honoured("default 16, as OpenAI has it; -1 is no limit; at most the context"),
  max_completion_tokens: honoured("the same; it wins"),
  temperature: honoured(),
  top_p: honoured(),
  seed: honoured("same seed, same batches, same tokens: see above; -1 draws one"),
  stop: honoured("up to 16 strings of up to 1000 characters"),
  frequency_penalty: honoured(),
  presence_penalty: honoured(),
  response_format: honoured("`text`, `json_object`, `json_schema`"),
  close_at_limit: honoured("`true`: a guided answer ends on a valid path before the token limit"),
  stream: honoured(),
  stream_options: honoured("`include_usage`"),
  ...constraints,
  ...llamaSamplers,
  user: ignored("is not used"),
};
