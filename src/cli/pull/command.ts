import type { Command } from "../command.ts";
import type { OptionTable } from "../option-table.ts";
import { serveOptions } from "../options.ts";

export const hubOptions = {
  revision: {
    group: "Hub",
    kind: "string",
    default: "main",
    value: "NAME",
    help: "Branch, tag or commit.",
  },
  token: {
    group: "Hub",
    kind: "string",
    variables: ["HF_TOKEN"],
    value: "TOKEN",
    help: "For private and gated repositories; HF_TOKEN works too. Only the hub's own host sees it.",
  },
  endpoint: {
    group: "Hub",
    kind: "string",
    variables: ["HF_ENDPOINT"],
    default: "https://huggingface.co",
    value: "URL",
    help: "Another hub; HF_ENDPOINT works too.",
  },
} as const satisfies OptionTable;

export const pullOptions = {
  file: {
    group: "Model",
    kind: "string",
    alias: ["f"],
    value: "FILE",
    help: "Which file; of a split model, any part. Default: its Q4_K_M, or what comes nearest.",
  },
  list: {
    group: "Model",
    kind: "boolean",
    default: false,
    help: "List the models of the repository and pull nothing.",
  },
  modelsDir: serveOptions.modelsDir,
  ...hubOptions,
} as const satisfies OptionTable;

export const pullCommand: Command = {
  name: "pull",
  summary: "Fetch a GGUF model from a Hugging Face repository.",
  usage: "pull OWNER/NAME [options]",
  operands: { min: 1, max: 1 },
  options: pullOptions,
  examples: `  The Q4_K_M of a repository, or what comes nearest; it prints the path of the file:
    fermata pull Qwen/Qwen3-8B-GGUF
  Another quantization, or a file by its name:
    fermata pull Qwen/Qwen3-8B-GGUF:Q8_0
    fermata pull Qwen/Qwen3-8B-GGUF --file Qwen3-8B-Q5_K_M.gguf
  What there is, with sizes:
    fermata pull Qwen/Qwen3-8B-GGUF --list
  A gated repository:
    HF_TOKEN=hf_... fermata pull OWNER/NAME-GGUF
`,
  notes: `A pull that was cut goes on where it stopped when the same command is given again. A file gets its
name only when its checksum is right. "fermata serve --hf OWNER/NAME" pulls and serves.
`,
};
