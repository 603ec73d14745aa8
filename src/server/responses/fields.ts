/** Fields of POST /v1/responses. */

import { constraints } from "../body/constraints.ts";
import { llamaSamplers } from "../body/llama-samplers.ts";
import { honoured, ignored, refused, type ParameterTable } from "../body/parameter.ts";

export const responseParameters: ParameterTable = {
  model: honoured("one model is loaded and answers to every name"),
  input: honoured("text; items of types that mean nothing here are skipped with a warning"),
  instructions: honoured("for this response only, as at OpenAI"),
  previous_response_id: honoured("needs the store"),
  conversation: honoured("needs the store"),
  store: honoured("default true; without a store the server keeps nothing"),
  background: honoured("needs the store"),
  stream: honoured(),
  stream_options: honoured("`include_obfuscation` is accepted; nothing is obfuscated"),
  metadata: honoured("up to 16 strings"),
  tools: honoured(
    "of types `function`, `custom`, `namespace` and `mcp` (configured servers); others are skipped with a warning",
  ),
  tool_choice: honoured("`auto`, `none`, `required`, a function or custom tool, `allowed_tools`"),
  parallel_tool_calls: honoured("`false`: one call in a round"),
  max_tool_calls: honoured("of tools that this server runs"),
  max_output_tokens: honoured("over all rounds; -1 is no limit; at most the context"),
  temperature: honoured(),
  top_p: honoured(),
  top_logprobs: honoured("up to 20"),
  truncation: honoured(
    "`auto` drops the oldest turns that do not fit, then the last one's oldest rounds of calls",
  ),
  text: honoured("`format`: `text`, `json_object`, `json_schema`; `verbosity` has no effect"),
  reasoning: honoured(
    "`effort`: `none` and `minimal` switch thinking off, the others on; also goes to the model's template; nothing is summed up",
  ),
  chat_template_kwargs: honoured("given to the model's template"),
  include: honoured(
    "`message.output_text.logprobs`; the results of hosted tools have nothing to show",
  ),
  prompt_cache_key: honoured("tells which requests belong together when history is missing"),
  safety_identifier: honoured("repeated in the response"),
  user: honoured("repeated in the response"),
  fermata: honoured("`events`: `standard` or `extended`; `tools`: `close` or `held`"),
  seed: honoured(),
  frequency_penalty: honoured(),
  presence_penalty: honoured(),
  ...constraints,
  ...llamaSamplers,

  service_tier: ignored(
    "has no effect: there is one tier",
    (value) => value === "auto" || value === "default",
  ),
  prompt_cache_options: ignored("has no effect: every prefix is cached"),
  prompt_cache_retention: ignored("has no effect: every prefix is cached"),
  client_metadata: ignored("is not used", () => true),

  context_management: refused(
    "is not supported: a response does not compact its own context",
    "Send POST /v1/responses/compact between turns",
    (value) => Array.isArray(value) && value.length === 0,
  ),
  moderation: refused("is not supported", "Leave it out"),
  prompt: refused(
    "names a stored prompt, and this server stores none",
    "Send its text as instructions",
  ),
  response_format: refused("belongs to chat completions", "Send text.format"),
  messages: refused("belongs to chat completions", "Send input"),
};
