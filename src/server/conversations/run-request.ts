/** The body that begins a run. */

import type { TemplateVariables } from "../../chat/types.ts";
import type { Sampling } from "../../engine/types.ts";
import {
  nullable,
  optional,
  readBody,
  required,
  type FieldTable,
  type ValuesOf,
  fieldError,
  isAbsent,
} from "../body/field.ts";
import {
  maxTokensFields,
  maxTokensOf,
  readSampling,
  samplingFields,
  type SamplingLimits,
} from "../body/generation.ts";
import { templateFields, templateVariables } from "../body/prompt.ts";
import { list, mapped, object, text } from "../body/values.ts";
import type { Warn } from "../body/warnings.ts";
import { type ConversationSettings, settingsFields, settingsOf } from "./fields.ts";

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
      /** The message whose files are attached anew. */
      filesOf: string | undefined;
      parentId: string | null | undefined;
    }
  /** The user's message, or an answer to it: it is answered anew. */
  | { kind: "retry"; messageId: string };

export interface RunRequest {
  input: RunInput;
  /** In place of the conversation's, for this run. */
  settings: Partial<ConversationSettings>;
  templateVariables: TemplateVariables;
  /** Whose defaults and limits they are depends on who answers. */
  sampling(limits: SamplingLimits): { sampling: Sampling; maxTokens: number | undefined };
}

const maxFiles = 20;
const showFile = 'Send [{"name": "notes.txt", "text": "…"}]';

const file = object(
  {
    name: required(
      mapped(text({ max: 200, remedy: showFile }), (name, path) => {
        if (name.trim() !== "") return name;
        throw fieldError("missing_field", path, "is missing", showFile);
      }),
    ),
    text: required(text({ remedy: showFile })),
  },
  showFile,
  "passed over",
);

export const runFields = {
  message: optional(text()),
  files: optional(list(file, { max: maxFiles, remedy: showFile }), "texts with their names"),
  files_of: optional(text(), "in place of files: the message whose files are attached again"),
  parent_id: nullable(text(), "the answer that the message follows; null: none; default: the leaf"),
  retry: optional(text(), "in place of message: the message that is answered anew"),
  ...settingsFields,
  model: { ...settingsFields.model, about: "for this run, as the next ones" },
  ...templateFields,
  temperature: samplingFields.temperature,
  top_p: samplingFields.top_p,
  top_k: samplingFields.top_k,
  min_p: samplingFields.min_p,
  repeat_penalty: samplingFields.repeat_penalty,
  frequency_penalty: samplingFields.frequency_penalty,
  presence_penalty: samplingFields.presence_penalty,
  seed: samplingFields.seed,
  max_tokens: { ...maxTokensFields.max_tokens, about: "-1 is no limit; at most the context" },
} satisfies FieldTable;

/** @throws FermataError of status 400 */
export function parseRunRequest(body: unknown, warn: Warn): RunRequest {
  const given = readBody(runFields, body, { warn }, 'Send {"message": "…"}');
  return {
    input: inputOf(given),
    settings: settingsOf(given),
    templateVariables: templateVariables(given.reasoning_effort, given.chat_template_kwargs),
    sampling: (limits) => ({
      sampling: readSampling(given, limits),
      maxTokens: maxTokensOf(given, limits),
    }),
  };
}

function inputOf(given: ValuesOf<typeof runFields>): RunInput {
  const { message = "", files = [], files_of: filesOf, parent_id: parentId, retry } = given;
  if (retry !== undefined) {
    for (const field of ["message", "files", "files_of", "parent_id"] as const)
      if (!isAbsent(given[field]))
        throw fieldError("invalid_value", field, "contradicts retry", "Send one of the two");
    return { kind: "retry", messageId: retry };
  }
  if (filesOf !== undefined && files.length > 0)
    throw fieldError("invalid_value", "files_of", "contradicts files", "Send one of the two");
  if (message.trim() === "" && files.length === 0 && filesOf === undefined) {
    const isMissing = given.message === undefined;
    const code = isMissing ? "missing_field" : "invalid_value";
    throw fieldError(code, "message", isMissing ? "is missing" : "is empty", "Send a text");
  }
  return { kind: "message", text: message, files, filesOf, parentId };
}
