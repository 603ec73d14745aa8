/** The body that begins a run. */

import { readTemplateVariables } from "../body/template-variables.ts";
import type { TemplateVariables } from "../../chat/types.ts";
import type { Sampling } from "../../engine/types.ts";
import {
  expectBody,
  fieldError,
  isAbsent,
  isObject,
  kindOf,
  readText,
  type JsonObject,
} from "../body/fields.ts";
import { checkParameters, honoured, type ParameterTable } from "../body/parameter.ts";
import { readMaxTokens, readSampling, type SamplingLimits } from "../body/sampling.ts";
import type { Warn } from "../body/warnings.ts";
import { type ConversationSettings, readSettings } from "./fields.ts";

export interface AttachedFile {
  name: string;
  text: string;
}

export type RunInput =
  /** `parentId` undefined: the leaf; null: a first message. */
  | {
      kind: "message";
      text: string;
      files: AttachedFile[];
      parentId: string | null | undefined;
    }
  /** The user's message, or an answer to it: it is answered anew. */
  | { kind: "retry"; messageId: string };

export interface RunRequest {
  input: RunInput;
  /** In place of the conversation's, for this run. */
  settings: Partial<ConversationSettings>;
  templateVariables: TemplateVariables;
  /** Whose defaults and limits they are depends on who answers. @throws FermataError of status 400 */
  sampling(limits: SamplingLimits): { sampling: Sampling; maxTokens: number | undefined };
}

const maxFiles = 20;
const maxFileName = 200;

const samplingFields = [
  "temperature",
  "top_p",
  "top_k",
  "min_p",
  "repeat_penalty",
  "frequency_penalty",
  "presence_penalty",
  "seed",
  "max_tokens",
] as const;

export const runParameters: ParameterTable = {
  message: honoured(),
  files: honoured(`up to ${maxFiles} texts with their names`),
  parent_id: honoured("the answer that the message follows; null: none; default: the leaf"),
  retry: honoured("in place of message: the message that is answered anew"),
  model: honoured("for this run, as the next ones"),
  tools: honoured(),
  response_format: honoured(),
  reasoning_effort: honoured(),
  chat_template_kwargs: honoured(),
  ...Object.fromEntries(samplingFields.map((name) => [name, honoured()])),
};

/** @throws FermataError of status 400 */
export function parseRunRequest(body: unknown, warn: Warn): RunRequest {
  expectBody(body, 'Send {"message": "…"}');
  checkParameters(runParameters, body, warn);
  const { model, tools, response_format: format } = body;
  return {
    input: readInput(body),
    settings: readSettings({ model, tools, response_format: format }),
    templateVariables: readTemplateVariables(body),
    sampling: (limits) => {
      const fields = pick(body, samplingFields);
      return {
        sampling: readSampling(fields, limits),
        maxTokens: readMaxTokens(fields, limits),
      };
    },
  };
}

function readInput(body: JsonObject): RunInput {
  const text = readText(body, "message");
  const retry = readText(body, "retry");
  const parent = body["parent_id"];
  if (retry !== null) {
    for (const field of ["message", "files", "parent_id"])
      if (!isAbsent(body[field]))
        throw fieldError("invalid_value", field, "contradicts retry", "Send one of the two");
    return { kind: "retry", messageId: retry };
  }
  const files = readFiles(body["files"]);
  if (text === null && files.length === 0)
    throw fieldError("missing_field", "message", "is missing", "Send a text");
  if ((text ?? "").trim() === "" && files.length === 0)
    throw fieldError("invalid_value", "message", "is empty", "Send a text");
  return {
    kind: "message",
    text: text ?? "",
    files,
    parentId: parent === null ? null : (readText(body, "parent_id") ?? undefined),
  };
}

function readFiles(value: unknown): AttachedFile[] {
  if (isAbsent(value)) return [];
  const remedy = 'Send [{"name": "notes.txt", "text": "…"}]';
  if (!Array.isArray(value))
    throw fieldError("invalid_type", "files", `must be an array, not ${kindOf(value)}`, remedy);
  if (value.length > maxFiles) {
    const problem = `has ${value.length} files`;
    throw fieldError("invalid_value", "files", problem, `Send at most ${maxFiles}`);
  }
  return value.map((file: unknown, index) => {
    const place = `files[${index}]`;
    if (!isObject(file))
      throw fieldError("invalid_type", place, `must be an object, not ${kindOf(file)}`, remedy);
    const name = readText(file, "name", `${place}.`);
    const text = readText(file, "text", `${place}.`);
    if (name === null || name.trim() === "")
      throw fieldError("missing_field", `${place}.name`, "is missing", remedy);
    if (name.length > maxFileName)
      throw fieldError("invalid_value", `${place}.name`, "is too long", "Shorten it");
    if (text === null) throw fieldError("missing_field", `${place}.text`, "is missing", remedy);
    return { name, text };
  });
}

function pick(body: JsonObject, fields: readonly string[]): JsonObject {
  return Object.fromEntries(
    fields.filter((field) => field in body).map((field) => [field, body[field]]),
  );
}
