/** Types of the fields that the parsers read, as JSON Schema. What a field does stands in the parameter tables. */

import {
  boolean,
  constant,
  count,
  list,
  metadata,
  nullable,
  number,
  object,
  oneOf,
  record,
  string,
  type Schema,
} from "./json-schema.ts";
import { guided, responseFormat, sampling, tokenLimit } from "./generation-schemas.ts";

const toolName: Schema = { type: "string", pattern: "^[A-Za-z0-9_.-]{1,64}$" };
const stop = oneOf(
  { type: "string", minLength: 1 },
  list({ type: "string", minLength: 1 }, { maxItems: 16 }),
);

const textPart = record({ type: constant("text"), text: string }, ["type", "text"]);
const content = oneOf(string, list(textPart));
const wireCall = record(
  {
    id: { type: "string", minLength: 1 },
    type: constant("function"),
    function: record({ name: toolName, arguments: string }, ["name", "arguments"]),
  },
  ["id", "function"],
);

export const chatTypes: Record<string, Schema> = {
  model: string,
  messages: list(
    oneOf(
      record({ role: { type: "string", enum: ["system", "developer", "user"] }, content }, [
        "role",
        "content",
      ]),
      record(
        {
          role: constant("assistant"),
          content: nullable(content),
          reasoning_content: string,
          tool_calls: list(wireCall),
        },
        ["role"],
      ),
      record({ role: constant("tool"), tool_call_id: string, content }, ["role", "tool_call_id"]),
    ),
    { minItems: 1 },
  ),
  max_tokens: tokenLimit,
  max_completion_tokens: tokenLimit,
  ...sampling,
  stop,
  stream: boolean,
  stream_options: record({ include_usage: boolean }),
  fermata: record({ tool_status: boolean }),
  tools: list(
    record(
      {
        type: constant("function"),
        function: record(
          { name: toolName, description: string, parameters: object, strict: boolean },
          ["name"],
        ),
      },
      ["type", "function"],
    ),
  ),
  tool_choice: oneOf({ type: "string", enum: ["auto", "none", "required"] }, object),
  parallel_tool_calls: boolean,
  response_format: responseFormat,
  ...guided,
  close_at_limit: boolean,
  n: { type: "integer", minimum: 1, maximum: 128 },
  logprobs: boolean,
  top_logprobs: { type: "integer", minimum: 0, maximum: 20 },
  reasoning_effort: string,
  chat_template_kwargs: object,
  store: boolean,
  metadata,
  continue_final_message: boolean,
  add_generation_prompt: boolean,
};

const responseText = record(
  { type: { type: "string", enum: ["input_text", "output_text"] }, text: string },
  ["type", "text"],
);
const responseItem = oneOf(
  record(
    {
      type: constant("message"),
      role: { type: "string", enum: ["user", "assistant", "system", "developer"] },
      content: oneOf(string, list(responseText)),
    },
    ["role", "content"],
  ),
  record({ type: constant("function_call"), call_id: string, name: toolName, arguments: string }, [
    "type",
    "call_id",
    "name",
    "arguments",
  ]),
  record(
    {
      type: constant("function_call_output"),
      call_id: string,
      output: oneOf(string, list(responseText)),
    },
    ["type", "call_id", "output"],
  ),
  record({ type: constant("custom_tool_call"), call_id: string, name: toolName, input: string }, [
    "type",
    "call_id",
    "name",
    "input",
  ]),
  record(
    {
      type: constant("custom_tool_call_output"),
      call_id: string,
      output: oneOf(string, list(responseText)),
    },
    ["type", "call_id", "output"],
  ),
  record({ type: constant("reasoning"), summary: list(object) }, ["type", "summary"]),
);

export const responseTypes: Record<string, Schema> = {
  model: string,
  input: oneOf(string, list(responseItem)),
  instructions: string,
  previous_response_id: string,
  conversation: oneOf(string, record({ id: string }, ["id"])),
  store: boolean,
  background: boolean,
  stream: boolean,
  stream_options: record({ include_obfuscation: boolean }),
  metadata,
  tools: list(
    oneOf(
      record(
        {
          type: constant("function"),
          name: toolName,
          description: string,
          parameters: object,
          strict: boolean,
        },
        ["type", "name"],
      ),
      record(
        {
          type: constant("custom"),
          name: toolName,
          description: string,
          format: oneOf(
            record({ type: constant("text") }, ["type"]),
            record(
              {
                type: constant("grammar"),
                syntax: { type: "string", enum: ["lark", "regex"] },
                definition: string,
              },
              ["type", "syntax", "definition"],
            ),
          ),
        },
        ["type", "name"],
      ),
      record({ type: constant("mcp"), server_label: string, server_url: string }, [
        "type",
        "server_label",
      ]),
    ),
  ),
  tool_choice: oneOf({ type: "string", enum: ["auto", "none", "required"] }, object),
  parallel_tool_calls: boolean,
  max_tool_calls: count,
  max_output_tokens: tokenLimit,
  truncation: { type: "string", enum: ["auto", "disabled"] },
  chat_template_kwargs: object,
  text: record({
    format: record({ type: { type: "string", enum: ["text", "json_object", "json_schema"] } }, [
      "type",
    ]),
    verbosity: { type: "string", enum: ["low", "medium", "high"] },
  }),
  reasoning: record({ effort: string, summary: string }),
  include: list(string),
  top_logprobs: { type: "integer", minimum: 0, maximum: 20 },
  prompt_cache_key: string,
  safety_identifier: string,
  user: string,
  fermata: record({
    events: { type: "string", enum: ["standard", "extended"] },
    tools: { type: "string", enum: ["close", "held"] },
  }),
  ...guided,
  ...sampling,
};

const messageBlock = oneOf(
  record({ type: constant("text"), text: string }, ["type", "text"]),
  record({ type: constant("tool_use"), id: string, name: toolName, input: object }, [
    "type",
    "id",
    "name",
    "input",
  ]),
  record(
    {
      type: constant("tool_result"),
      tool_use_id: string,
      content: oneOf(string, list(textPart)),
      is_error: boolean,
    },
    ["type", "tool_use_id"],
  ),
  record({ type: constant("thinking"), thinking: string, signature: string }, [
    "type",
    "thinking",
    "signature",
  ]),
);

export const messageTypes: Record<string, Schema> = {
  model: string,
  messages: list(
    record(
      {
        role: { type: "string", enum: ["user", "assistant"] },
        content: oneOf(string, list(messageBlock)),
      },
      ["role", "content"],
    ),
    { minItems: 1 },
  ),
  system: oneOf(string, list(textPart)),
  max_tokens: count,
  stop_sequences: list({ type: "string", minLength: 1 }, { maxItems: 16 }),
  stream: boolean,
  temperature: number(0, 2),
  top_p: number(0, 1),
  top_k: { type: "integer", minimum: 0 },
  tools: list(
    record({ name: toolName, description: string, input_schema: object }, ["name", "input_schema"]),
  ),
  tool_choice: record(
    { type: { type: "string", enum: ["auto", "any", "none", "tool"] }, name: string },
    ["type"],
  ),
  thinking: record(
    { type: { type: "string", enum: ["enabled", "disabled", "adaptive"] }, budget_tokens: count },
    ["type"],
  ),
  output_config: record({
    effort: string,
    format: record({ type: constant("json_schema"), schema: object }, ["type", "schema"]),
  }),
};

export const completionBody = record(
  {
    prompt: oneOf(string, list({ type: "integer", minimum: 0 }), list(string)),
    max_tokens: tokenLimit,
    max_completion_tokens: tokenLimit,
    response_format: responseFormat,
    ...guided,
    close_at_limit: boolean,
    n: { type: "integer", minimum: 1, maximum: 128 },
    echo: boolean,
    logprobs: { type: "integer", minimum: 0, maximum: 20 },
    stop,
    stream: boolean,
    ...sampling,
  },
  ["prompt"],
);
export const nativeCompletionBody = record(
  {
    prompt: oneOf(string, list({ type: "integer", minimum: 0 }), list(string)),
    max_tokens: tokenLimit,
    response_format: responseFormat,
    ...guided,
    close_at_limit: boolean,
    n_probs: { type: "integer", minimum: 0, maximum: 20 },
    return_tokens: boolean,
    stop,
    stream: boolean,
    ...sampling,
  },
  ["prompt"],
);
export const embeddingBody = record(
  {
    input: oneOf(string, list({ type: "integer", minimum: 0 }), list(string)),
    model: string,
    dimensions: count,
    encoding_format: { type: "string", enum: ["float", "base64"] },
  },
  ["input"],
);
export const tokenizeBody = record(
  { content: string, add_special: boolean, parse_special: boolean, with_pieces: boolean },
  ["content"],
);
export const detokenizeBody = record({ tokens: list({ type: "integer", minimum: 0 }) }, ["tokens"]);
export const templateBody = record(
  {
    messages: chatTypes["messages"]!,
    tools: chatTypes["tools"]!,
    reasoning_effort: string,
    chat_template_kwargs: object,
    continue_final_message: boolean,
    add_generation_prompt: boolean,
  },
  ["messages"],
);

export const toolOutput = record(
  {
    tool_call_id: string,
    output: list(record({ type: constant("output_text"), text: string }, ["type", "text"]), {
      minItems: 1,
    }),
  },
  ["tool_call_id", "output"],
);
export const approvalDecision = record(
  {
    decision: { type: "string", enum: ["approve", "deny"] },
    reason: { type: "string", maxLength: 2000 },
  },
  ["decision"],
);
export const newConversation = record({ metadata, items: list(responseItem, { maxItems: 20 }) });
export const conversationMetadata = record({ metadata }, ["metadata"]);
export const newItems = record({ items: list(responseItem, { minItems: 1, maxItems: 20 }) }, [
  "items",
]);

const settings = {
  title: { type: "string", maxLength: 200 },
  model: nullable(string),
  tools: nullable(list(string)),
  instructions: nullable(string),
  response_format: nullable(chatTypes["response_format"]!),
};
export const newBranchedConversation = record(settings);
export const conversationPatch = record({ ...settings, leaf_id: string });
export const runBody = record({
  message: string,
  files: list(record({ name: string, text: string }, ["name", "text"]), { maxItems: 20 }),
  parent_id: nullable(string),
  retry: string,
  model: settings.model,
  tools: settings.tools,
  response_format: settings.response_format,
  reasoning_effort: string,
  chat_template_kwargs: object,
  temperature: sampling.temperature,
  top_p: sampling.top_p,
  top_k: sampling.top_k,
  min_p: sampling.min_p,
  repeat_penalty: sampling.repeat_penalty,
  frequency_penalty: sampling.frequency_penalty,
  presence_penalty: sampling.presence_penalty,
  seed: sampling.seed,
  max_tokens: tokenLimit,
});
