/** Fields of POST /v1/responses and of the bodies of /v1/conversations. */

import {
  ignored,
  optional,
  refused,
  type FieldTable,
  type Type,
  fieldError,
  kindOf,
  required,
  unless,
  anything,
} from "../body/field.ts";
import { isJsonObject } from "../../json.ts";
import {
  generationFields,
  modelField,
  streamField,
  timesFields,
  topLogprobs,
  maxTokensFields,
  tokenLimit,
} from "../body/generation.ts";
import { metadataField } from "../body/stored.ts";
import { reasoningEffort, templateFields } from "../body/prompt.ts";
import { parallelField } from "../body/tools.ts";
import { boolean, integer, list, object, oneOf, text } from "../body/values.ts";
import { inputItems, newItems } from "./input/items.ts";
import { echoedFormat } from "./input/settings.ts";
import { responseToolChoice } from "./tools/tool-choice.ts";
import { responseTools } from "./tools/tools.ts";

/** What is remembered, or repeated in each event. */
const name = text({ max: 512 });
const cached = "has no effect: every prefix is cached";

const conversationId: Type<string> = {
  schema: {
    anyOf: [
      { type: "string", minLength: 1 },
      { type: "object", properties: { id: { type: "string", minLength: 1 } }, required: ["id"] },
    ],
  },
  remedy: 'Send "conv_…" or {"id": "conv_…"}',
  read(value, path) {
    const id = isJsonObject(value) ? value["id"] : value;
    if (typeof id === "string" && id !== "") return id;
    const problem = `must be a conversation's id, not ${kindOf(id)}`;
    throw fieldError("invalid_type", path, problem, this.remedy);
  },
};

export const responseFields = {
  model: modelField,
  input: optional(
    inputItems,
    "text; items of types that mean nothing here are skipped with a warning; tools of `additional_tools` and what `configuration_update` sets hold from there on, also in the turns that follow",
    [],
  ),
  instructions: optional(text(), "for this response only, as at OpenAI"),
  previous_response_id: optional(text(), "needs the store"),
  conversation: optional(conversationId, "needs the store"),
  store: optional(boolean, "default true; without a store the server keeps nothing"),
  background: optional(boolean, "needs the store", false),
  stream: streamField,
  stream_options: ignored("nothing is obfuscated", anything),
  metadata: metadataField,
  tools: optional(
    responseTools,
    "of types `function`, `custom`, `namespace` and `mcp` (configured servers); others are skipped with a warning",
  ),
  tool_choice: responseToolChoice,
  parallel_tool_calls: parallelField,
  max_tool_calls: optional(integer(1), "of tools that this server runs"),
  max_output_tokens: optional(
    tokenLimit,
    "over all rounds; -1 is no limit; 0 reads the prompt into the cache, and the response is `completed` without output; at most the context",
  ),
  n_predict: {
    ...maxTokensFields.n_predict,
    about: "the same under llama-server's name; `max_output_tokens` wins",
  },
  top_logprobs: optional(topLogprobs, "how many alternatives to each token"),
  truncation: optional(
    oneOf(["auto", "disabled"]),
    "`auto` drops the oldest turns that do not fit, then the last one's oldest rounds of calls",
    "disabled",
  ),
  text: optional(
    object(
      { format: optional(echoedFormat), verbosity: optional(text()) },
      'Send {"format": {"type": "text"}}',
    ),
    "`format`; `verbosity` has no effect",
  ),
  reasoning: optional(
    object(
      { effort: optional(reasoningEffort), summary: optional(text()) },
      'Send {"effort": "medium"}',
    ),
    "`effort`: `none` and `minimal` switch thinking off, the others on; also goes to the model's template; nothing is summed up",
  ),
  chat_template_kwargs: templateFields.chat_template_kwargs,
  include: optional(
    list(text(), { remedy: "Send an array of names" }),
    "`message.output_text.logprobs`; `reasoning.encrypted_content`: for clients that send the reasoning back and keep no text (it is encoded, not encrypted); the results of hosted tools have nothing to show",
    [],
  ),
  prompt_cache_key: optional(
    name,
    "requests with the same value belong together when history is missing",
  ),
  safety_identifier: optional(name, "repeated in the response"),
  user: optional(name, "repeated in the response"),
  // What OpenAI's wire has no words for, in one place that no client sends by accident.
  fermata: optional(
    object(
      {
        events: optional(oneOf(["standard", "extended"])),
        tools: optional(oneOf(["close", "held"])),
      },
      'Send {"events": "extended"}',
      "refused",
    ),
    "`events`: `standard` or `extended`; `tools`: `close` or `held`",
  ),
  ...timesFields,
  ...generationFields,

  service_tier: ignored("has no effect: there is one tier", unless("auto", "default")),
  prompt_cache_options: ignored(cached),
  prompt_cache_retention: ignored(cached),
  client_metadata: ignored("is not used", anything),

  context_management: refused(
    "is not supported: a response does not compact its own context",
    "Send POST /v1/responses/compact between turns",
    unless([]),
  ),
  moderation: refused("is not supported", "Leave it out"),
  prompt: refused(
    "names a stored prompt, and this server stores none",
    "Send its text as instructions",
  ),
  response_format: refused("belongs to chat completions", "Send text.format"),
  messages: refused("belongs to chat completions", "Send input"),
} satisfies FieldTable;

export const newConversationFields = {
  metadata: metadataField,
  items: optional(newItems(0), "", []),
} satisfies FieldTable;

export const conversationLabelFields = {
  metadata: metadataField,
} satisfies FieldTable;

export const newItemsFields = { items: required(newItems(1)) } satisfies FieldTable;
