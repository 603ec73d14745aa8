/** Options of llama-server that are absent here, and what to do instead. */

import { type FermataError, invalidOption } from "../errors.ts";

const sampling =
  "requests set it; without it the model file's general.sampling values hold, or the defaults in docs/parameters.md";
const alwaysOn = "it is always on, leave it out";
const aside =
  "give the model as --embedding-model FILE, or --rerank-model FILE, beside one that generates";
const textOnly = "models take text only";
const noAdapters = "adapters are absent: merge it into the model's file";

const instead: Readonly<Record<string, string>> = {
  "--temp": sampling,
  "--temperature": sampling,
  "--top-k": sampling,
  "--top-p": sampling,
  "--min-p": sampling,
  "--repeat-penalty": sampling,
  "--presence-penalty": sampling,
  "--frequency-penalty": sampling,
  "--samplers": "their order is fixed",
  "--seed": "requests set it, as seed",
  "-s": "requests set it, as seed",
  "--embedding": aside,
  "--embeddings": aside,
  "--rerank": aside,
  "--reranking": aside,
  "--metrics": alwaysOn,
  "--slots": alwaysOn,
  "--props": "/props is always on and read only, leave it out",
  "--jinja": alwaysOn,
  "--cont-batching": alwaysOn,
  "-cb": alwaysOn,
  "--no-slots": "/slots is always on and shows no text, leave it out",
  "--no-jinja": "templates are always rendered as Jinja, leave it out",
  "--no-cont-batching": "requests always share steps; --parallel 1 runs one at a time",
  "--kv-unified": "use --kv-layout unified",
  "-kvu": "use --kv-layout unified",
  "--no-kv-unified": "use --kv-layout streams",
  "--no-webui": "use --no-ui-server",
  "--no-ui": "use --no-ui-server",
  "--webui": "use --ui-server",
  "--ui": "use --ui-server",
  "--cors-origins": "use --cors-origin",
  "--api-key-file": "use --api-key @FILE",
  "--no-cache-prompt": "use --no-context-cache",
  "--cache-prompt": alwaysOn,
  "--cache-reuse": "prefixes are found by their tokens, leave it out",
  "--context-shift": "a full context ends an answer with length, leave it out",
  "--no-context-shift": alwaysOn,
  "--slot-save-path": "--cache-disk keeps prompts in files by itself",
  "--swa-full": "the cache of a sliding window is chosen by itself, leave it out",
  "--reasoning-format": "requests set it, as reasoning_format",
  "--reasoning-budget": "use --reasoning off for none; otherwise max_tokens limits an answer",
  "--chat-template-kwargs": "requests set it, as chat_template_kwargs",
  "--fit": "the model is fitted to the memory by itself, leave it out",
  "--spec-type":
    "use --drafts, with --draft-model FILE for a second model or --draft-mtp for the model's own MTP layers",
  "--mmproj": textOnly,
  "-mm": textOnly,
  "--mmproj-url": textOnly,
  "--lora": noAdapters,
  "--lora-scaled": noAdapters,
  "--control-vector": noAdapters,
  "--model-url": "use fermata pull, or --hf OWNER/NAME",
  "-mu": "use fermata pull, or --hf OWNER/NAME",
  "--models-preset": "absent: --models-dir FOLDER serves the models of a folder",
  "--mcp-servers-config": "use --mcp-config FILE",
  "--tools": "tools come from MCP servers: --mcp-config FILE",
  "--sleep-idle-seconds":
    "with --models-dir, --keep-alive SECONDS unloads a model that nobody uses",
  "--ssl-key-file": "put a proxy that speaks TLS before it",
  "--ssl-cert-file": "put a proxy that speaks TLS before it",
  "--timeout": "--process-timeout and --tool-timeout say how long what may take",
  "--threads-http": "requests need no threads of their own, leave it out",
  "--threads-batch": "--threads holds for prompts too",
  "-tb": "--threads holds for prompts too",
};

/** Null: llama-server has no such option, or it is one of ours. */
export function llamaServerOption(name: string): FermataError | null {
  if (!Object.hasOwn(instead, name)) return null;
  const message = `${name} is an option of llama-server: ${instead[name]}.`;
  return invalidOption(message, name.replace(/^-+/, ""));
}
