/** What /openapi.json says of the routes of Ollama's API; of those that stream, `answer` is each line. */

import type { Schema } from "../body/field.ts";
import { listedModelShape, modelDetails } from "../answer/model-list.ts";
import {
  chatFields,
  embedFields,
  generateFields,
  oneEmbeddingFields,
  pullFields,
  showFields,
} from "../ollama/fields.ts";
import {
  answer,
  boolean,
  choice,
  contentToken,
  list,
  object,
  real,
  string,
  whole,
} from "../body/shapes.ts";
import type { Operation } from "./operation.ts";

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

const user = { role: "user", content: "Hello!" };
export const ollamaOperations: Readonly<Record<string, Operation>> = {
  "POST /api/chat": {
    summary: "An answer in Ollama's format; a JSON object a line, unless `stream` is false.",
    request: chatFields,
    example: { model: "default", messages: [user], stream: false },
    lines: true,
    answer: answered({
      message: answer({ role: choice("assistant"), content: string }, said),
    }),
  },
  "POST /api/generate": {
    summary: "An answer to one prompt in Ollama's format.",
    request: generateFields,
    example: { model: "default", prompt: "Hello!", stream: false },
    lines: true,
    answer: answered({ response: string }, { ...said, context: list(whole) }),
  },
  "POST /api/embed": {
    summary: "Vectors of texts in Ollama's format, if an embedding model is loaded.",
    request: embedFields(),
    answer: answer({
      model: string,
      embeddings: list(list(real)),
      total_duration: whole,
      load_duration: whole,
      prompt_eval_count: whole,
    }),
  },
  "POST /api/embeddings": {
    summary: "The vector of one text, for Ollama's clients that are older than /api/embed.",
    request: oneEmbeddingFields,
    answer: answer({ embedding: list(real) }),
  },
  "GET /api/version": {
    summary: "The version of Ollama whose API this follows.",
    answer: answer({ version: string }),
  },
  "GET /api/tags": {
    summary: "The model and the agents, in Ollama's format.",
    answer: answer({
      models: list(answer({ ...listedModelShape, capabilities: list(string) })),
    }),
  },
  "GET /api/ps": {
    summary: "The loaded model, in Ollama's format.",
    answer: answer({
      models: list(
        answer({
          ...listedModelShape,
          expires_at: string,
          size_vram: whole,
          context_length: whole,
        }),
      ),
    }),
  },
  "POST /api/show": {
    summary: "What a model is and can do, in Ollama's format.",
    request: showFields,
    example: { model: "default" },
    answer: answer({
      modelfile: string,
      parameters: string,
      template: string,
      details: modelDetails,
      model_info: object,
      capabilities: list(string),
      modified_at: string,
    }),
  },
  "POST /api/pull": {
    summary: "Says that a model is here. Nothing is fetched.",
    request: pullFields,
    example: { model: "default", stream: false },
    lines: true,
    answer: answer({ status: choice("success") }),
  },
};
