/** Body of POST /v1/responses/{id}/tool_outputs. */

import { expectBody, fieldError, isObject, kindOf } from "../body/fields.ts";

const defaultMaxBytes = 1024 * 1024;

export interface PostedOutput {
  callId: string;
  output: string;
}

export function parseToolOutput(body: unknown, maxBytes = defaultMaxBytes): PostedOutput {
  expectBody(body, 'Send {"tool_call_id": …, "output": […]}');
  const { tool_call_id: callId, output } = body;
  if (typeof callId !== "string" || callId === "") {
    const problem = `must be a string, not ${kindOf(callId)}`;
    throw fieldError("invalid_type", "tool_call_id", problem, "Send the call's id");
  }
  const text = textOf(output);
  const bytes = Buffer.byteLength(text);
  if (bytes > maxBytes) {
    const problem = `has ${bytes} bytes`;
    throw fieldError("invalid_value", "output", problem, `Send at most ${maxBytes}`);
  }
  return { callId, output: text };
}

function textOf(output: unknown): string {
  const remedy = 'Send [{"type": "output_text", "text": "…"}]';
  if (typeof output === "string") return output;
  if (!Array.isArray(output)) {
    const problem = `must be an array, not ${kindOf(output)}`;
    throw fieldError("invalid_type", "output", problem, remedy);
  }
  if (output.length === 0) throw fieldError("invalid_value", "output", "is empty", remedy);
  return output
    .map((part: unknown, index) => {
      const text = isObject(part) ? part["text"] : undefined;
      if (typeof text === "string") return text;
      const field = `output[${index}].text`;
      throw fieldError("invalid_type", field, `must be a string, not ${kindOf(text)}`, remedy);
    })
    .join("\n");
}
