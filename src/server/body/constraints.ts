/** What form the answer has, under the names of vLLM and llama-server; every endpoint that generates takes them. */

import { honoured, ignored, refused, type ParameterTable } from "./parameter.ts";

const isEmptyList = (value: unknown): boolean => Array.isArray(value) && value.length === 0;
const isFalse = (value: unknown): boolean => value === false;
const useDocument = "Send guided_json_schema, guided_regex or guided_grammar";

export const constraints: ParameterTable = {
  guided_json_schema: honoured("a JSON Schema that the answer satisfies"),
  guided_json: honoured("the same under vLLM's name"),
  json_schema: honoured("the same under llama-server's name"),
  guided_regex: honoured("ECMA-262, of the whole answer; what is regular"),
  guided_choice: honoured("up to 1000 strings, one of which is the answer"),
  guided_grammar: honoured("Lark as llguidance has it, or GBNF if it contains `::=`"),
  grammar: honoured("the same under llama-server's name"),
  structured_outputs: honoured(
    "vLLM's object: one of `json`, `regex`, `choice`, `grammar`, `json_object`",
  ),
  guided_whitespace_pattern: refused("is not supported", useDocument),
  structural_tag: refused("is not supported", useDocument),
  guided_decoding_backend: ignored("has no effect: there is one"),
  grammar_lazy: refused(
    "asks for a grammar that begins in the middle, which is not supported",
    "Leave it out: calls of tools are guided by themselves",
    isFalse,
  ),
  grammar_triggers: refused(
    "asks for a grammar that begins in the middle, which is not supported",
    "Leave it out: calls of tools are guided by themselves",
    isEmptyList,
  ),

  logit_bias: honoured(
    "up to 10000 tokens, by id or by a text that has them; an object or pairs; `false` bans",
  ),
  ignore_eos: honoured(
    "`true`: end tokens are banned; a limit, a stop string or a form ends the text",
  ),
  n_predict: honoured("the limit of tokens under llama-server's name; -1 is none"),
  min_tokens: refused("is not supported", "Send ignore_eos with a limit", (value) => value === 0),
  stop_token_ids: refused("is not supported", "Send stop with the tokens' text", isEmptyList),
  bad_words: refused("is not supported", "Send logit_bias with a text and false", isEmptyList),
  allowed_token_ids: refused("is not supported", "Send guided_choice or guided_regex", isEmptyList),
  use_beam_search: refused("is not supported", "Leave it out", isFalse),
  include_stop_str_in_output: refused("is not supported", "Leave it out", isFalse),
  n_indent: refused("is not supported", "Leave it out", (value) => value === 0),
  t_max_predict_ms: refused(
    "is not supported",
    "Send a limit of tokens",
    (value) => typeof value === "number" && value <= 0,
  ),
  lora: refused("names adapters, and none is loaded", "Leave it out", isEmptyList),
};
