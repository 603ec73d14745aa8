/** Fields of POST /v1/messages and /v1/messages/count_tokens. */

import type { DocumentFormat } from "../../guidance/types.ts";
import {
  ignored,
  optional,
  refused,
  required,
  type FieldTable,
  unless,
  anything,
} from "../body/field.ts";
import {
  modelField,
  streamField,
  maxTokensFields,
  stopLimits,
  stopList,
  samplingFields,
} from "../body/generation.ts";
import { reasoningEffort } from "../body/prompt.ts";
import { documentFields, textFormat } from "../body/guidance.ts";
import { fieldsNotHere } from "../body/fields-not-here.ts";
import { keepAliveField } from "../body/keep-alive.ts";
import { tokenRuleFields } from "../body/token-rules.ts";
import { integer, mapped, object, oneOf } from "../body/values.ts";
import { messagesField, systemField } from "./messages.ts";
import { toolChoiceField, toolsField } from "./tools.ts";

const onTheirServers = "asks for what Anthropic's servers run";
const showThinking = 'Send {"type": "enabled"}, "adaptive" or "disabled"';

/** What Anthropic's API is asked for it keeps to. */
const strictFormat = mapped(textFormat, (format): DocumentFormat | null =>
  format?.kind === "json_schema" ? { ...format, strict: true, alwaysStrict: true } : format,
);

/** Of the prompt; all that counting tokens reads. */
export const promptFields = {
  model: modelField,
  keep_alive: keepAliveField,
  system: systemField,
  messages: messagesField,
  tools: toolsField,
  tool_choice: toolChoiceField,
  thinking: optional(
    object(
      {
        type: required(oneOf(["enabled", "disabled", "adaptive"], "kind of thinking")),
        budget_tokens: ignored("has no effect: the model or max_tokens ends the thinking"),
      },
      showThinking,
      "passed over",
    ),
    "switches thinking on or off, where the model's template can",
  ),
  output_config: optional(
    object(
      { format: optional(strictFormat), effort: optional(reasoningEffort) },
      'Send {"format": …}',
      "passed over",
    ),
    "`format` of type `json_schema`; `effort` goes to the model's template, and switches thinking on where `thinking` does not say",
  ),
} satisfies FieldTable;

export const messageFields = {
  ...promptFields,
  max_tokens: optional(
    integer(0),
    "may be left out; 0 reads the prompt into the cache and answers nothing; at most the context",
  ),
  stop_sequences: optional(stopList, stopLimits, []),
  stream: streamField,
  temperature: samplingFields.temperature,
  top_p: samplingFields.top_p,
  top_k: samplingFields.top_k,
  seed: { ...samplingFields.seed, about: `not Anthropic's: ${samplingFields.seed.about}` },

  metadata: ignored("is not used", anything),
  cache_control: ignored("is not needed: every prefix is cached", anything),
  service_tier: ignored("has no effect: there is one tier", anything),
  betas: ignored("has no effect", anything),
  anthropic_beta: ignored("has no effect", anything),
  anthropic_version: ignored("has no effect", anything),
  inference_geo: ignored("has no effect: everything runs here"),
  speed: ignored("has no effect"),
  diagnostics: ignored("has no effect"),
  context_management: ignored("has no effect: history is read as it is sent"),
  user_profile_id: ignored("is not used"),
  workspace_id: ignored("is not used"),

  thread: refused(
    "asks for a history on the server, which is not supported",
    "Send the whole history in messages",
  ),
  container: refused(onTheirServers, "Offer tools in tools"),
  mcp_servers: refused(
    onTheirServers,
    "Configure MCP servers where Fermata is started",
    unless([]),
  ),
  output_format: optional(
    strictFormat,
    "the earlier name of `output_config.format`; either is sent",
  ),
} satisfies FieldTable;

const refusal = refused(
  "is not a field of Anthropic's API",
  "Send output_config.format, or use /v1/chat/completions",
  unless(false, []),
);
const { logit_bias, ignore_eos, n_predict } = { ...samplingFields, ...maxTokensFields };
const otherWires = {
  ...documentFields,
  ...fieldsNotHere,
  ...tokenRuleFields,
  logit_bias,
  ignore_eos,
  n_predict,
};

/** With fields of other wires: what would change the answer is not passed over. */
export const messageKeys: FieldTable = {
  ...Object.fromEntries(Object.keys(otherWires).map((name) => [name, refusal])),
  ...messageFields,
};
