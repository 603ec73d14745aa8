/** What an Anthropic messages body asks for. Pure: no clock, no log, no engine. */

import { guidanceOf } from "../body/guidance.ts";
import { lastIsUsers, templateVariables } from "../body/prompt.ts";
import {
  checkKeys,
  readFieldsInParts,
  type ValuesOf,
  expectBody,
  fieldError,
} from "../body/field.ts";
import { readSampling, type SamplingLimits } from "../body/generation.ts";
import type { Warn } from "../body/warnings.ts";
import { messageFields, messageKeys, promptFields } from "./fields.ts";
import { conversationOf } from "./messages.ts";
import type { JsonObject } from "../../json.ts";

/** @throws FermataError of status 400 whose `param` is the field at fault */
export function* parseMessagesRequest(value: unknown, limits: SamplingLimits, warn: Warn) {
  const body = checkBody(value, warn);
  const given = yield* readFieldsInParts(messageFields, body, { warn });
  const prompt = promptOf(given);
  const { path, document } = formatOf(given);
  if (prompt.prefill !== "" && document !== undefined) {
    const problem = "asks for a whole document, and the last message begins the answer already";
    throw fieldError("invalid_value", path, problem, lastIsUsers);
  }
  const { temperature, top_p, top_k, seed, max_tokens: maxTokens } = given;
  return {
    ...prompt,
    sampling: readSampling({ temperature, top_p, top_k, seed }, limits),
    guidance: guidanceOf(prompt.toolChoice, {
      document,
      parallel: prompt.toolChoice.parallel,
      closeAtLimit: false,
    }),
    stop: given.stop_sequences,
    // More than the context holds is no error: agents send one fixed number to every model.
    maxTokens: maxTokens === undefined ? limits.maxTokens : Math.min(maxTokens, limits.contextSize),
    stream: given.stream,
  };
}

/** Clients send it under either name, and with both the answer would have two formats. */
function formatOf({ output_config, output_format }: ValuesOf<typeof messageFields>) {
  const format = output_config?.format ?? undefined;
  const earlier = output_format ?? undefined;
  if (format !== undefined && earlier !== undefined)
    throw fieldError(
      "invalid_value",
      "output_format",
      "is the earlier name of output_config.format, which is given too",
      "Send one of the two",
    );
  return earlier === undefined
    ? { path: "output_config.format", document: format }
    : { path: "output_format", document: earlier };
}

/** The body of `count_tokens`. @throws as `parseMessagesRequest` */
export function* parseCountRequest(value: unknown, warn: Warn) {
  return promptOf(yield* readFieldsInParts(promptFields, checkBody(value, warn), { warn }));
}

function checkBody(body: unknown, warn: Warn): JsonObject {
  expectBody(body, 'Send {"messages": […]}');
  checkKeys(messageKeys, body, warn);
  return body;
}

function promptOf(given: ValuesOf<typeof promptFields>) {
  const { model = null, tools = null, thinking } = given;
  const conversation = conversationOf(given.system, given.messages);
  // An answer that is begun has no place for thinking, which Anthropic's models do only where it is asked for.
  const unasked = conversation.prefill === "" ? {} : { enable_thinking: false };
  return {
    model,
    ...conversation,
    /** Null: not given. An empty list is given. */
    tools,
    toolChoice: given.tool_choice ?? { mode: "auto" as const, parallel: true },
    // Templates of models that think on request have variables for it.
    templateVariables: templateVariables(
      given.output_config?.effort,
      thinking === undefined ? unasked : { enable_thinking: thinking.type !== "disabled" },
    ),
  };
}
