/** Fields of POST /v1/messages and /v1/messages/count_tokens. */

import { constraints } from "../body/constraints.ts";
import { honoured, ignored, refused, type ParameterTable } from "../body/parameter.ts";

const quietly = (): boolean => true;
const isEmptyList = (value: unknown): boolean => Array.isArray(value) && value.length === 0;

export const messageParameters: ParameterTable = {
  model: honoured("one model is loaded and answers to every name; an unknown one is logged"),
  messages: honoured(
    "text, documents of plain text, tool calls and results, thinking; a last one of the assistant's begins the answer",
  ),
  system: honoured("a string or blocks of text"),
  max_tokens: honoured("may be left out; at most the context"),
  stop_sequences: honoured("up to 16 strings of up to 1000 characters"),
  stream: honoured(),
  temperature: honoured(),
  top_p: honoured(),
  top_k: honoured("0 turns it off"),
  tools: honoured("of the client; those of Anthropic's servers are skipped with a warning"),
  tool_choice: honoured("`auto`, `any`, `tool`, `none`; `disable_parallel_tool_use`"),
  thinking: honoured("switches thinking on or off, where the model's template can"),
  output_config: honoured("`format` of type `json_schema`; `effort` has no effect"),

  metadata: ignored("is not used", quietly),
  cache_control: ignored("is not needed: every prefix is cached", quietly),
  service_tier: ignored("has no effect: there is one tier", quietly),
  betas: ignored("has no effect", quietly),
  anthropic_beta: ignored("has no effect", quietly),
  anthropic_version: ignored("has no effect", quietly),
  inference_geo: ignored("has no effect: everything runs here"),
  speed: ignored("has no effect"),
  diagnostics: ignored("has no effect"),
  context_management: ignored("has no effect: history is read as it is sent"),
  user_profile_id: ignored("is not used"),
  workspace_id: ignored("is not used"),

  thread: refused(
    "asks for a history that is kept here, which is not supported",
    "Send the whole history in messages",
  ),
  container: refused("asks for what Anthropic's servers run", "Offer tools in tools"),
  mcp_servers: refused(
    "asks for what Anthropic's servers run",
    "Configure MCP servers where Fermata is started",
    isEmptyList,
  ),
  output_format: refused("was replaced", "Send output_config.format"),
  // What would change the answer is not passed over.
  ...Object.fromEntries(
    [...Object.keys(constraints), "response_format"].map((field) => [
      field,
      refused(
        "is not a field of Anthropic's API",
        "Send output_config.format, or use /v1/chat/completions",
        (value) => value === false || isEmptyList(value),
      ),
    ]),
  ),
};
