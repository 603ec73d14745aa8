/** Fields of POST /v1/chat/completions. */

import { constraints } from "../body/constraints.ts";
import { llamaSamplers } from "../body/llama-samplers.ts";
import { honoured, ignored, refused, type ParameterTable } from "../body/parameter.ts";

export const chatCompletionParameters: ParameterTable = {
  model: honoured("one model is loaded and answers to every name; an unknown one is logged"),
  messages: honoured("text only; `developer` is `system`"),
  max_tokens: honoured("-1 is no limit; at most the context; `max_completion_tokens` wins"),
  max_completion_tokens: honoured(
    "over all rounds of an answer; -1 is no limit; at most the context",
  ),
  temperature: honoured(),
  top_p: honoured(),
  seed: honoured("same seed, same batches, same tokens: see above; -1 draws one"),
  stop: honoured("up to 16 strings of up to 1000 characters"),
  frequency_penalty: honoured(),
  presence_penalty: honoured(),
  stream: honoured(),
  stream_options: honoured("`include_usage`"),
  tools: honoured("of type `function`; others are skipped with a warning"),
  tool_choice: honoured("`auto`, `none`, `required`, a function, `allowed_tools`"),
  parallel_tool_calls: honoured("`false`: one call in a round"),
  response_format: honoured(
    "`text`, `json_object`, `json_schema`; a `schema` may stand beside the type, as at llama-server",
  ),
  ...constraints,
  close_at_limit: honoured("`true`: a guided answer ends on a valid path before the token limit"),
  n: honoured("up to 128; choice `i` draws with `seed + i`; 1 while the server runs the tools"),
  logprobs: honoured("of the content's tokens, before bias, penalties, temperature and filters"),
  top_logprobs: honoured("0 to 20"),
  reasoning_effort: honoured(
    "`none` and `minimal` switch thinking off, the others on; also goes to the model's template",
  ),
  chat_template_kwargs: honoured(
    "goes to the model's template; `enable_thinking` switches thinking on or off, whatever the template calls it",
  ),
  continue_final_message: honoured(
    "an answer that the last message begins is continued, unless this is `false`; only what is new is told",
  ),
  add_generation_prompt: honoured(
    "`false`: the prompt does not open the assistant's turn; not together with `continue_final_message`",
  ),
  ...llamaSamplers,
  store: honoured("`true`: kept in the store, to be listed and read; default false"),
  fermata: honoured(
    "`tool_status`: `true` adds chunks with the state of the tools that the server runs",
  ),
  metadata: honoured("up to 16 strings, kept with `store`"),

  user: ignored("is not used"),
  safety_identifier: ignored("is not used"),
  service_tier: ignored(
    "has no effect: there is one tier",
    (value) => value === "auto" || value === "default",
  ),
  prompt_cache_key: ignored("is not needed: prefixes are found by their tokens"),
  prompt_cache_options: ignored("has no effect: every prefix is cached"),
  prompt_cache_retention: ignored("has no effect: every prefix is cached"),
  prediction: ignored("has no effect: nothing is decoded ahead"),
  verbosity: ignored("has no effect: the model was not trained on it"),

  modalities: refused(
    "asks for more than text",
    'Send ["text"] or leave it out',
    (value) => Array.isArray(value) && value.length === 1 && value[0] === "text",
  ),
  audio: refused("asks for audio, and the model writes text only", "Leave it out"),
  web_search_options: refused(
    "asks for a web search, which is not built in",
    "Offer a search tool in tools",
  ),
  moderation: refused("is not supported", "Leave it out"),
  functions: refused("was replaced", "Send tools"),
  function_call: refused("was replaced", "Send tool_choice"),
};
