/** llama-server's samplers, which every endpoint that generates takes under its names. */

import { honoured, ignored, refused, type ParameterTable } from "./parameter.ts";

export const llamaSamplers: ParameterTable = {
  top_k: honoured("-1 and 0 turn it off"),
  min_p: honoured(),
  typical_p: honoured(),
  top_n_sigma: honoured("-1 and 0 turn it off"),
  repeat_penalty: honoured(),
  repetition_penalty: honoured("the same under vLLM's name"),
  repeat_last_n: honoured("tokens that the penalties look back on; -1 is the context"),
  xtc_probability: honoured(),
  xtc_threshold: honoured(),
  dynatemp_range: honoured(),
  dynatemp_exponent: honoured(),
  dry_multiplier: honoured("0 turns DRY off"),
  dry_base: honoured(),
  dry_allowed_length: honoured(),
  dry_penalty_last_n: honoured("-1 is the context"),
  dry_sequence_breakers: honoured("up to 16 strings of up to 40 characters"),
  mirostat: honoured("0, 1 or 2; in place of the other filters"),
  mirostat_tau: honoured(),
  mirostat_eta: honoured(),
  min_keep: honoured(),
  samplers: ignored("has no effect: the order is llama-server's default"),
  cache_prompt: ignored("has no effect: every prefix is cached", (value) => value === true),
  adaptive_target: refused(
    "asks for a sampler that is not there",
    "Leave it out",
    (value) => typeof value === "number" && value < 0,
  ),
};
