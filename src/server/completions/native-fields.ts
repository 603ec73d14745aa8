/** Fields of POST /completion, as llama-server has it. */

import { completionParameters } from "./fields.ts";
import { honoured, ignored, refused, type ParameterTable } from "../body/parameter.ts";

const own = new Set(["n", "best_of", "echo", "suffix", "logprobs", "stream_options"]);

export const nativeCompletionParameters: ParameterTable = {
  ...Object.fromEntries(Object.entries(completionParameters).filter(([name]) => !own.has(name))),
  prompt: honoured(
    'a text, tokens, texts and tokens mixed, `{"prompt_string": …}`, or a list of them',
  ),
  n_predict: honoured("default -1: no limit but the context's"),
  max_tokens: honoured("the same"),
  n_probs: honoured("0 to 20"),
  return_tokens: honoured("`true`: the ids of what was generated"),
  response_fields: honoured("names of what is wanted of the answer; `a/b` is `b` in `a`"),
  post_sampling_probs: refused(
    "is not supported: probabilities are the model's own",
    "Leave it out",
    (value) => value === false,
  ),
  id_slot: ignored("has no effect: prefixes are found by their tokens", (value) => value === -1),
  n_keep: ignored("has no effect: a context is not shifted", (value) => value === 0),
  n_discard: ignored("has no effect: a context is not shifted", (value) => value === 0),
  n_cache_reuse: ignored("has no effect: a prefix is reused as it is", (value) => value === 0),
  timings_per_token: ignored("has no effect: the last event has the timings"),
  return_progress: ignored("has no effect"),
  backend_sampling: ignored("has no effect"),
};
