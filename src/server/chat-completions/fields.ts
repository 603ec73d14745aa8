/** Fields of POST /v1/chat/completions. */

import { ignored, optional, refused, type FieldTable, unless } from "../body/field.ts";
import { conversationFields, reasoningEffort, templateFields } from "../body/prompt.ts";
import {
  choicesField,
  closeAtLimitField,
  generationFields,
  modelField,
  streamField,
  streamOptionsField,
  topLogprobs,
  maxTokensFields,
  stopField,
  timesFields,
} from "../body/generation.ts";
import { metadata } from "../body/stored.ts";
import { tokenWishFields } from "../body/token-wishes.ts";
import { parallelField, toolChoiceField, chatToolsField } from "../body/tools.ts";
import { boolean, list, object, oneOf, record } from "../body/values.ts";

const cached = "has no effect: every prefix is cached";

export const chatCompletionFields = {
  model: modelField,
  ...conversationFields,
  ...maxTokensFields,
  max_completion_tokens: {
    ...maxTokensFields.max_completion_tokens,
    about:
      "over all rounds of an answer; -1 is no limit; 0 reads the prompt into the cache and answers nothing; at most the context",
  },
  stop: stopField,
  stream: streamField,
  stream_options: streamOptionsField,
  ...timesFields,
  tools: chatToolsField,
  tool_choice: toolChoiceField,
  parallel_tool_calls: parallelField,
  ...generationFields,
  reasoning_format: optional(
    oneOf(["auto", "deepseek", "deepseek-legacy", "none"]),
    "`none`: reasoning stands in `content`, between `<think>` and `</think>`; the others: in `reasoning_content`",
  ),
  close_at_limit: closeAtLimitField,
  n: {
    ...choicesField,
    about: "choice `i` draws with `seed + i`; 1 while the server runs the tools",
  },
  logprobs: optional(
    boolean,
    "of the content's tokens, before bias, penalties, temperature and filters",
    false,
  ),
  top_logprobs: optional(topLogprobs, "how many alternatives to each token"),
  n_probs: optional(topLogprobs, "above 0: `logprobs` with so many alternatives"),
  ...tokenWishFields,
  ...templateFields,
  reasoning: optional(
    object(
      {
        effort: optional(reasoningEffort),
        reasoning_effort: optional(reasoningEffort),
        enabled: optional(boolean),
        exclude: optional(boolean, "", false),
        max_tokens: ignored("has no effect: a model ends its reasoning by itself"),
      },
      'Send {"effort": "medium"}',
    ),
    "SGLang's, Ollama's and OpenRouter's: `effort` (or `reasoning_effort`) in place of `reasoning_effort`; `enabled` as `enable_thinking`; `exclude`: `true` as `include_reasoning: false`",
  ),
  documents: optional(
    list(record("Send an object"), { remedy: "Send an array of objects" }),
    "vLLM's: goes to the model's template, which must know it",
  ),
  echo: optional(
    boolean,
    "vLLM's: `true`: an answer that the last message begins is told with its beginning",
    false,
  ),
  include_reasoning: optional(boolean, "vLLM's: `false`: the reasoning is not told", true),
  separate_reasoning: optional(boolean, 'SGLang\'s: `false`: as `reasoning_format: "none"`', true),
  store: optional(boolean, "`true`: kept in the store, to be listed and read", false),
  // Clients label requests for their own use; only what is kept is held to the limits.
  metadata: optional(
    record(metadata.remedy, metadata.schema),
    "up to 16 strings, kept with `store`",
    {},
  ),
  fermata: optional(
    object({ tool_status: optional(boolean, "", false) }, 'Send {"tool_status": true}', "refused"),
    "`tool_status`: `true` adds chunks with the state of the tools that the server runs",
  ),

  user: ignored("is not used"),
  request_id: ignored("is not used: `X-Request-Id` is"),
  priority: ignored("has no effect: clients take turns", unless(0)),
  skip_special_tokens: ignored(
    "has no effect: special tokens are no part of a message",
    unless(true),
  ),
  spaces_between_special_tokens: ignored("has no effect", unless(true)),
  add_special_tokens: ignored("has no effect: the model's template writes them", unless(false)),
  stream_reasoning: ignored("has no effect: reasoning is streamed as it comes", unless(true)),
  safety_identifier: ignored("is not used"),
  service_tier: ignored("has no effect: there is one tier", unless("auto", "default")),
  prompt_cache_key: ignored("is not needed: prefixes are found by their tokens"),
  prompt_cache_options: ignored(cached),
  prompt_cache_retention: ignored(cached),
  prediction: ignored("has no effect: drafts find by themselves what repeats"),
  verbosity: ignored("has no effect: the model was not trained on it"),

  modalities: refused("asks for more than text", 'Send ["text"] or leave it out', unless(["text"])),
  audio: refused("asks for audio, and the model writes text only", "Leave it out"),
  web_search_options: refused(
    "asks for a web search, which is not built in",
    "Offer a search tool in tools",
  ),
  moderation: refused("is not supported", "Leave it out"),
  chat_template: refused("would replace the model's own", "Start with --chat-template"),
  truncate_prompt_tokens: refused("is not supported", "Send fewer messages"),
  functions: refused("was replaced", "Send tools"),
  function_call: refused("was replaced", "Send tool_choice"),
} satisfies FieldTable;
