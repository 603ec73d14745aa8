/** What the endpoints of Ollama's API answer with, as JSON Schema; of those that stream, each line. */

import type { Schema } from "../body/field.ts";
import { answer, contentToken, listedModel, modelDetails, real, whole } from "./answers.ts";
import { boolean, constant, list, object, string } from "./json-schema.ts";

export const version = answer({ version: string });
export const tags = answer({
  models: list(answer({ ...listedModel, capabilities: list(string) })),
});
export const loadedModels = answer({
  models: list(
    answer({ ...listedModel, expires_at: string, size_vram: whole, context_length: whole }),
  ),
});
export const shownModel = answer({
  modelfile: string,
  parameters: string,
  template: string,
  details: modelDetails,
  model_info: object,
  capabilities: list(string),
  modified_at: string,
});

const call = answer({
  id: string,
  function: answer({ index: whole, name: string, arguments: object }),
});
const said = { thinking: string, tool_calls: list(call) };
const durations = {
  total_duration: whole,
  load_duration: whole,
  prompt_eval_count: whole,
  prompt_eval_duration: whole,
  eval_count: whole,
  eval_duration: whole,
  warnings: list(string),
};

function answered(content: Record<string, Schema>, others: Record<string, Schema> = {}): Schema {
  return answer(
    { model: string, created_at: string, ...content, done: boolean },
    {
      ...others,
      logprobs: list(contentToken),
      done_reason: { type: "string", enum: ["stop", "length", "load", "unload"] },
      ...durations,
    },
  );
}

export const chat = answered({
  message: answer({ role: constant("assistant"), content: string }, said),
});
export const generated = answered({ response: string }, { ...said, context: list(whole) });
export const embeddings = answer({
  model: string,
  embeddings: list(list(real)),
  total_duration: whole,
  load_duration: whole,
  prompt_eval_count: whole,
});
export const embedding = answer({ embedding: list(real) });
