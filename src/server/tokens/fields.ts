/** Fields of POST /tokenize, /detokenize and /apply-template. */

import { conversationFields, templateFields } from "../body/prompt.ts";
import { optional, required, type FieldTable } from "../body/field.ts";
import { tokenIds } from "../body/prompt-inputs.ts";
import { toolsField } from "../body/tools.ts";
import { boolean, text } from "../body/values.ts";

export const tokenizeFields = {
  content: required(text({ remedy: 'Send {"content": "…"}' })),
  add_special: optional(
    boolean,
    "the token that a text begins with, where the model has one",
    false,
  ),
  parse_special: optional(boolean, "special tokens are recognized in the text", true),
  with_pieces: optional(boolean, "each token with its text", false),
} satisfies FieldTable;

export const detokenizeFields = { tokens: required(tokenIds(0)) } satisfies FieldTable;

export const templateBodyFields = {
  ...conversationFields,
  tools: toolsField,
  ...templateFields,
} satisfies FieldTable;
