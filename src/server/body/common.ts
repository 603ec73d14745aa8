/** Fields that several wires have. */

import { fieldError, isAbsent, isObject, kindOf, type JsonObject } from "./fields.ts";
import type { Warn } from "./warnings.ts";

/** As OpenAI has it. */
export const maxChoices = 128;

export const maxTopLogprobs = 20;

export function readModel(body: JsonObject): string | null {
  const { model } = body;
  if (isAbsent(model)) return null;
  if (typeof model !== "string") {
    throw fieldError(
      "invalid_type",
      "model",
      `must be a string, not ${kindOf(model)}`,
      "Send a model's name or leave it out",
    );
  }
  return model;
}

export function readStreamOptions(value: unknown, stream: boolean, warn: Warn): boolean {
  if (isAbsent(value)) return false;
  if (!isObject(value)) {
    throw fieldError(
      "invalid_type",
      "stream_options",
      `must be an object, not ${kindOf(value)}`,
      'Send {"include_usage": true}',
    );
  }
  if (!stream) warn("stream_options", "has no effect without stream");
  for (const [key, option] of Object.entries(value)) {
    if (key === "include_usage") {
      if (!isAbsent(option) && typeof option !== "boolean") {
        const problem = `must be a boolean, not ${kindOf(option)}`;
        throw fieldError(
          "invalid_type",
          "stream_options.include_usage",
          problem,
          "Send true or false",
        );
      }
    } else if (option !== false) {
      warn(`stream_options.${key}`, "has no effect");
    }
  }
  return value["include_usage"] === true;
}
