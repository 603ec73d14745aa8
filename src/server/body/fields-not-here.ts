/** Fields that other servers have and that do nothing here: passed over, or refused where that would change the answer. */

import { ignored, refused, type FieldTable, unless } from "./field.ts";

const useDocument = "Send guided_json_schema, guided_regex or guided_grammar";
const lazyGrammar = "asks for a grammar that begins in the middle, which is not supported";
const leaveOutGrammar = "Leave it out: calls of tools are guided by themselves";

/** Fields of vLLM and llama-server that Fermata does not have. */
export const fieldsNotHere = {
  guided_whitespace_pattern: refused("is not supported", useDocument),
  structural_tag: refused("is not supported", useDocument),
  guided_decoding_backend: ignored("has no effect: there is one"),
  grammar_lazy: refused(lazyGrammar, leaveOutGrammar, unless(false)),
  grammar_triggers: refused(lazyGrammar, leaveOutGrammar, unless([])),
  use_beam_search: refused("is not supported", "Leave it out", unless(false)),
  stop_regex: refused("is not supported", "Send stop with texts", unless([])),
  n_indent: refused("is not supported", "Leave it out", unless(0)),
  t_max_predict_ms: ignored(
    "has no effect here: max_tokens is the limit",
    (value) => typeof value === "number" && value <= 0,
  ),
  lora: refused("names adapters, and none is loaded", "Leave it out", unless([])),
} satisfies FieldTable;

const shift = "has no effect: a context is not shifted";
const budget = "has no effect: a model ends its reasoning by itself";

/** llama-server's, whose clients send them to every endpoint that generates. */
export const llamaFields = {
  post_sampling_probs: refused(
    "is not supported here: probabilities are the model's own",
    "Send it to /completion",
    unless(false),
  ),
  id_slot: ignored("has no effect: prefixes are found by their tokens", unless(-1)),
  n_keep: ignored(shift, unless(0)),
  n_discard: ignored(shift, unless(0)),
  n_cache_reuse: ignored("has no effect: a prefix is reused as it is", unless(0)),
  t_max_prompt_ms: ignored("has no effect: a prompt is read to its end"),
  backend_sampling: ignored("has no effect", unless(false)),
  sse_ping_interval: ignored("has no effect: the server has an interval of its own"),
  reasoning_format: ignored(
    "has no effect: reasoning is separate from content",
    (value) => value !== "none",
  ),
  reasoning_budget_tokens: ignored(budget, unless(-1)),
  thinking_budget_tokens: ignored(budget, unless(-1)),
} satisfies FieldTable;
