/** What /openapi.json says of the routes of Ollama's API. */

import {
  chatFields,
  embedFields,
  generateFields,
  oneEmbeddingFields,
  showFields,
} from "../ollama/fields.ts";
import * as ollamaAnswers from "./ollama-answers.ts";
import type { Operation } from "./operation.ts";

const user = { role: "user", content: "Hello!" };

export const ollamaOperations: Readonly<Record<string, Operation>> = {
  "POST /api/chat": {
    summary: "An answer in Ollama's format; a JSON object a line, unless `stream` is false.",
    request: chatFields,
    example: { model: "default", messages: [user], stream: false },
    lines: true,
    answer: ollamaAnswers.chat,
  },
  "POST /api/generate": {
    summary: "An answer to one prompt in Ollama's format.",
    request: generateFields,
    example: { model: "default", prompt: "Hello!", stream: false },
    lines: true,
    answer: ollamaAnswers.generated,
  },
  "POST /api/embed": {
    summary: "Vectors of texts in Ollama's format, if an embedding model is loaded.",
    request: embedFields(),
    answer: ollamaAnswers.embeddings,
  },
  "POST /api/embeddings": {
    summary: "The vector of one text, for Ollama's clients that are older than /api/embed.",
    request: oneEmbeddingFields,
    answer: ollamaAnswers.embedding,
  },
  "GET /api/version": {
    summary: "The version of Ollama whose API this follows.",
    answer: ollamaAnswers.version,
  },
  "GET /api/tags": {
    summary: "The model and the agents, in Ollama's format.",
    answer: ollamaAnswers.tags,
  },
  "GET /api/ps": {
    summary: "The loaded model, in Ollama's format.",
    answer: ollamaAnswers.loadedModels,
  },
  "POST /api/show": {
    summary: "What a model is and can do, in Ollama's format.",
    request: showFields,
    example: { model: "default" },
    answer: ollamaAnswers.shownModel,
  },
};
