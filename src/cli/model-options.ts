/** The options of `fermata serve` that say which model answers, and how it is spoken to. */

import { formats } from "../chat/formats/formats.ts";
import { reasoningDefaults } from "../chat/template/thinking.ts";
import { namedTemplates } from "./chat-template.ts";
import type { OptionTable } from "./option-table.ts";

export const modelOptions = {
  model: {
    group: "Model",
    kind: "path",
    alias: ["w"],
    value: "PATH",
    help: "GGUF file to serve, the first part of a split one, or a folder with one model. Default: the model that comes with Fermata.",
  },
  hf: {
    group: "Model",
    kind: "string",
    alias: ["m"],
    value: "REPO",
    help: "Model of a Hugging Face repository, as OWNER/NAME or OWNER/NAME:Q4_K_M; pulled if it is not here yet.",
  },
  file: {
    group: "Model",
    kind: "string",
    alias: ["f"],
    value: "FILE",
    help: "Which file of --hf. Default: its Q4_K_M, or what comes nearest.",
  },
  modelsDir: {
    group: "Model",
    kind: "path",
    value: "FOLDER",
    help: "Where pulled models are kept. Default: fermata/models in your cache folder.",
  },
  alias: {
    group: "Model",
    kind: "list",
    split: true,
    value: "NAME",
    help: "Name of the model for clients, instead of its file name. Repeatable: answers say the first, requests may say any.",
  },
  embeddingModel: {
    group: "Model",
    kind: "path",
    value: "FILE",
    help: "GGUF file of a second model, for /v1/embeddings.",
  },
  pooling: {
    group: "Model",
    kind: "choice",
    choices: ["mean", "cls", "last"],
    help: "How --embedding-model makes one vector of a text. Default: as its file says.",
  },
  chatTemplate: {
    group: "Model",
    kind: "string",
    value: "TEMPLATE",
    help: `Chat template instead of the model's own: Jinja text, or one of ${namedTemplates.join(", ")}.`,
  },
  chatTemplateFile: {
    group: "Model",
    kind: "path",
    value: "FILE",
    help: "The same from a file with Jinja text.",
  },
  toolFormat: {
    group: "Model",
    kind: "choice",
    choices: ["auto", ...formats.map((format) => format.name)],
    default: "auto",
    value: "NAME",
    help: "How the model writes tool calls; auto finds it from the chat template.",
  },
  reasoning: {
    group: "Model",
    kind: "choice",
    choices: [...reasoningDefaults],
    default: "auto",
    help: "Whether the model thinks before it answers, where a request does not say; auto does what llama-server does.",
  },
} as const satisfies OptionTable;
