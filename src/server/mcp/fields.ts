/** Arguments of the MCP tools that answer prompts. */

import { optional, required, type FieldTable } from "../body/field.ts";
import { basicSampling, stopField } from "../body/generation.ts";
import { integer, text } from "../body/values.ts";

const { temperature, top_p, seed } = basicSampling;

const sharedFields = {
  max_tokens: optional(integer(1), "at most the context"),
  temperature,
  top_p,
  seed,
  stop: stopField,
} satisfies FieldTable;

export const chatToolFields = {
  prompt: required(text({ min: 1, remedy: "Send a text" }), "the user's message"),
  system: optional(text({ remedy: "Send a text" }), "the system message", ""),
  ...sharedFields,
} satisfies FieldTable;

/** An agent brings its instructions. */
export const agentToolFields = {
  prompt: required(
    text({ min: 1, remedy: "Send a text" }),
    "the task, with all that is needed for it",
  ),
  ...sharedFields,
} satisfies FieldTable;
