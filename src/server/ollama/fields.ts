/** Fields of Ollama's POST /api/chat, /api/generate, /api/embed, /api/embeddings, /api/show and /api/pull. */

import { keepAliveField, noKeepAlive } from "../body/keep-alive.ts";
import type { DocumentFormat } from "../../guidance/types.ts";
import {
  ignored,
  optional,
  refused,
  type FieldTable,
  type Type,
  fieldError,
  kindOf,
  unless,
  anything,
} from "../body/field.ts";
import { largestInput } from "../../engine/embedder.ts";
import { isJsonObject } from "../../json.ts";
import { stopField, samplingFields, topLogprobs } from "../body/generation.ts";
import { toolsField } from "../body/tools.ts";
import { tokenIds } from "../body/prompt-inputs.ts";
import { boolean, either, integer, list, mapped, object, text } from "../body/values.ts";
import { imagesField, messagesField } from "./messages.ts";

const modelName = text({ min: 1, remedy: "Send a model's name" });
const modelField = optional(
  modelName,
  "with a tag or without. A single model answers to every name, and an unknown one is logged; with `--models-dir` an unknown one is a 404",
);
const streamField = optional(boolean, "a JSON object a line", true);
const atStart = ignored("has no effect: it is set when the server is started", anything);

const { temperature, top_p, top_k, min_p, typical_p, seed, ...penalties } = samplingFields;

const optionFields = {
  num_predict: optional(integer(-2), "-1 and -2 are no limit; at most the context"),
  stop: stopField,
  temperature,
  top_p,
  top_k,
  min_p,
  typical_p,
  seed,
  repeat_penalty: penalties.repeat_penalty,
  repeat_last_n: penalties.repeat_last_n,
  presence_penalty: penalties.presence_penalty,
  frequency_penalty: penalties.frequency_penalty,
  mirostat: penalties.mirostat,
  mirostat_tau: penalties.mirostat_tau,
  mirostat_eta: penalties.mirostat_eta,
  num_ctx: atStart,
  num_batch: atStart,
  num_gpu: atStart,
  main_gpu: atStart,
  num_thread: atStart,
  numa: atStart,
  low_vram: atStart,
  use_mmap: atStart,
  use_mlock: atStart,
  num_keep: ignored("has no effect: a context is not shifted", anything),
  penalize_newline: ignored("has no effect", anything),
  tfs_z: ignored("has no effect: the sampler is gone from llama.cpp", unless(1)),
} satisfies FieldTable;

const options = object(optionFields, 'Send {"temperature": 0}');

/** A keyword of a schema that a mask cannot enforce is left out of the mask, as Ollama has it. */
const format: Type<DocumentFormat | null> = {
  schema: { anyOf: [{ type: "string", enum: ["", "json"] }, { type: "object" }] },
  remedy: 'Send "json" or a JSON Schema',
  read(value, path) {
    if (value === "") return null;
    if (value === "json") return { kind: "json_object" };
    if (isJsonObject(value))
      return { kind: "json_schema", schema: value, strict: false, field: path };
    const code = typeof value === "string" ? "invalid_value" : "invalid_type";
    const problem = typeof value === "string" ? "is not known" : `must not be ${kindOf(value)}`;
    throw fieldError(code, path, problem, this.remedy);
  },
};

const efforts = ["low", "medium", "high", "max"];

const think: Type<boolean | string> = {
  schema: { anyOf: [boolean.schema, { type: "string", enum: efforts }] },
  remedy: `Send true, false, ${efforts.map((one) => `"${one}"`).join(", ")}`,
  read(value, path) {
    if (typeof value === "boolean") return value;
    if (typeof value === "string" && efforts.includes(value)) return value;
    const code = typeof value === "string" ? "invalid_value" : "invalid_type";
    throw fieldError(code, path, "is not a known choice", this.remedy);
  },
};

const answerFields = {
  model: modelField,
  stream: streamField,
  format: optional(format, "`json`, or a JSON Schema that the answer satisfies"),
  options: optional(options, "sampling and limits; what belongs to the start has no effect"),
  think: optional(
    think,
    "switches thinking on or off, where the model's template can; or an effort",
  ),
  keep_alive: keepAliveField,
  logprobs: optional(boolean, "of the text's tokens", false),
  top_logprobs: optional(topLogprobs, "how many alternatives to each token"),
} satisfies FieldTable;

export const chatFields = {
  ...answerFields,
  messages: messagesField,
  tools: toolsField,
} satisfies FieldTable;

export const generateFields = {
  ...answerFields,
  prompt: optional(
    text({ remedy: "Send a string" }),
    "empty: the model is there already, and the answer is empty",
    "",
  ),
  system: optional(text({ remedy: "Send a string" }), "the system message", ""),
  raw: optional(boolean, "`true`: the prompt is not put into the model's template", false),
  images: imagesField,
  suffix: optional(
    text({ remedy: "Send a string" }),
    "what stands behind the answer, for models that were trained to fill in the middle; no special token is recognized in it or in the prompt",
    "",
  ),
  template: refused(
    "would replace the model's own",
    'Send "raw": true with a prompt that is rendered, or start with --chat-template',
    unless(""),
  ),
  context: optional(
    tokenIds(0),
    "the tokens that an earlier answer had under `context`: they come before the prompt. The turns are joined as they are, without what the template writes between two of them: a conversation is better sent to `/api/chat`. Tools of MCP servers have no part in such an answer",
  ),
} satisfies FieldTable;

const maybeName = text({ remedy: "Send a model's name" });

/** Ollama's own client always sends `model`, empty where it is asked by the old name. */
export const showFields = {
  model: optional(maybeName, "one that /api/tags lists", ""),
  name: optional(maybeName, "the same under its old name", ""),
  verbose: ignored("has no effect", anything),
} satisfies FieldTable;

/** Of a model that is here already: clients pull it before they use it. */
export const pullFields = {
  model: optional(maybeName, "one that /api/tags lists; nothing is fetched", ""),
  name: optional(maybeName, "the same under its old name", ""),
  stream: streamField,
  insecure: ignored("has no effect", anything),
  username: ignored("has no effect", anything),
  password: ignored("has no effect", anything),
} satisfies FieldTable;

/** As OpenAI has it. */
const maxInputs = 2048;

const inputRemedy = `Send a text, or an array of up to ${maxInputs}`;
const inputText = text({ remedy: inputRemedy });

/** An empty text asks for nothing, as an empty list does: clients load a model so. In a list it is a text. */
const embedInput = either(
  {
    string: mapped(inputText, (given) => (given === "" ? [] : [given])),
    array: list(inputText, { max: maxInputs, remedy: inputRemedy }),
  },
  "a text or an array",
  inputRemedy,
);

/** @param dimensions of the model's vectors */
export function embedFields(dimensions?: number) {
  return {
    model: modelField,
    input: optional(
      embedInput,
      `a text, or a list of up to ${maxInputs}; none is answered by none`,
      [],
    ),
    dimensions: optional(
      integer(1, dimensions),
      "the first so many numbers, brought to length 1 again",
    ),
    truncate: optional(
      boolean,
      `a text of more than ${largestInput.ofReaders} tokens (${largestInput.ofWriters} where the model writes text, too), or more than the model was trained for, is cut at its end; \`false\`: it is an error`,
      true,
    ),
    options: ignored("has no effect", anything),
    keep_alive: noKeepAlive,
  } satisfies FieldTable;
}

/** Of /api/embeddings, which /api/embed replaced: one text. */
export const oneEmbeddingFields = {
  model: modelField,
  prompt: optional(
    text({ remedy: 'Send {"prompt": "…"}' }),
    "a text; none is answered by none",
    "",
  ),
  options: ignored("has no effect", anything),
  keep_alive: noKeepAlive,
} satisfies FieldTable;
