/** Body of POST /v1/responses/{id}/tool_outputs. */

import { readBody, required, type FieldTable } from "../body/field.ts";
import { fieldError } from "../body/fields.ts";
import { either, list, mapped, object, text } from "../body/values.ts";
import type { Warn } from "../body/warnings.ts";

const defaultMaxBytes = 1024 * 1024;
const showOutput = 'Send [{"type": "output_text", "text": "…"}]';

export interface PostedOutput {
  callId: string;
  output: string;
}

const part = object({ text: required(text({ remedy: showOutput })) }, showOutput, "passed over");
const parts = list(part, { min: 1, remedy: showOutput });

export const toolOutputFields = {
  tool_call_id: required(text({ min: 1, remedy: "Send the call's id" })),
  output: required(
    either(
      {
        string: text(),
        array: mapped(parts, (texts) => texts.map((one) => one.text).join("\n")),
      },
      "an array",
      showOutput,
    ),
  ),
} satisfies FieldTable;

export function parseToolOutput(
  body: unknown,
  warn: Warn,
  maxBytes = defaultMaxBytes,
): PostedOutput {
  const showBody = 'Send {"tool_call_id": …, "output": […]}';
  const { tool_call_id: callId, output } = readBody(toolOutputFields, body, { warn }, showBody);
  const bytes = Buffer.byteLength(output);
  if (bytes <= maxBytes) return { callId, output };
  throw fieldError("invalid_value", "output", `has ${bytes} bytes`, `Send at most ${maxBytes}`);
}
