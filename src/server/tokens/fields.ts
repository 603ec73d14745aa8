/** Fields of POST /tokenize, /detokenize and /apply-template. */

import { modelField } from "../body/generation.ts";
import { conversationFields, templateFields } from "../body/prompt.ts";
import { optional, required, type FieldTable } from "../body/field.ts";
import { tokenIds } from "../body/prompt-inputs.ts";
import { chatToolsField } from "../body/tools.ts";
import { boolean, text } from "../body/values.ts";

export const tokenizeFields = {
  content: required(
    text({ remedy: 'Send {"content": "…"}' }),
    "or vLLM's fields: `prompt` or `messages`, `add_special_tokens`, `return_token_strs`",
  ),
  add_special: optional(
    boolean,
    "the token that a text begins with, where the model has one",
    false,
  ),
  parse_special: optional(boolean, "special tokens are recognized in the text", true),
  with_pieces: optional(boolean, "each token with its text", false),
} satisfies FieldTable;

const vllmFields = {
  model: modelField,
  return_token_strs: optional(boolean, "the text of each token", false),
} satisfies FieldTable;

/** vLLM's, of a text. */
export const tokenizePromptFields = {
  ...vllmFields,
  prompt: required(text({ remedy: 'Send {"prompt": "…"}' })),
  add_special_tokens: optional(
    boolean,
    "the token that a text begins with, where the model wants it",
    true,
  ),
} satisfies FieldTable;

/** vLLM's, of a chat. */
export const tokenizeChatFields = {
  ...vllmFields,
  ...conversationFields,
  tools: chatToolsField,
  ...templateFields,
  add_special_tokens: optional(boolean, "as of a text, before what the template writes", false),
} satisfies FieldTable;

export const detokenizeFields = {
  model: modelField,
  tokens: required(tokenIds(0)),
} satisfies FieldTable;

export const templateBodyFields = {
  ...conversationFields,
  tools: chatToolsField,
  ...templateFields,
} satisfies FieldTable;
