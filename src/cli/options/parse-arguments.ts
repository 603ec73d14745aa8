/** Arguments of a command as option values and operands; what to say of llama-server's options that are absent here. */

import { type FermataError, invalidOption } from "../../errors.ts";
import type { Command, ParsedArguments } from "../commands/command.ts";
import { didYouMean } from "../../near-names.ts";
import { flagOf, givenNames, type OptionSpec, type OptionTable } from "./option-table.ts";
import { valueFromText } from "./option-values.ts";

/** Names of before, and what says the same today. */
export const renamedOptions: Readonly<Record<string, string>> = {
  toolTotalTimeout: "--tool-timeout call=SECONDS",
  maxToolSeconds: "--tool-timeout answer=SECONDS",
  approvalTimeout: "--tool-timeout approval=SECONDS",
  responsesToolTimeout: "--tool-timeout output=SECONDS",
  maxToolCalls: "--max-tool-rounds, with 8 calls per round",
  storeDays: "--store-limits days=N",
  storeResponses: "--store-limits responses=N",
  storeMegabytes: "--store-limits megabytes=N",
  chatTemplateFile: "--chat-template FILE",
  drainSeconds: "--process-timeout drain=SECONDS",
  hangTimeout: "--process-timeout loop=SECONDS,step=SECONDS",
};

/** @param name as it was written */
export function renamedOption(name: string, key: string): FermataError {
  const message = `${name} is gone: use ${renamedOptions[key]}.`;
  return invalidOption(message, flagOf(key));
}

interface KnownFlag {
  key: string;
  spec: OptionSpec;
  /** `--no-…` of a boolean. */
  negated: boolean;
}

/**
 * `--name value`, `--name=value`, `--switch`, `--no-switch`. A value that begins with two dashes needs
 * the form with `=`. The last one counts, but lists grow.
 * @throws FermataError invalid_option, naming the nearest valid option
 */
export function parseArguments(
  args: readonly string[],
  command: Command,
  cwd: string,
): ParsedArguments {
  const flags = flagsOf(command.options);
  const values = new Map<string, unknown>();
  const operands: string[] = [];
  for (let index = 0; index < args.length; index++) {
    const argument = args[index]!;
    if (argument === "--") {
      operands.push(...args.slice(index + 1));
      break;
    }
    if (argument === "-" || !argument.startsWith("-")) {
      operands.push(argument);
      continue;
    }
    const equals = argument.indexOf("=");
    const name = equals < 0 ? argument : argument.slice(0, equals);
    const inline = equals < 0 ? undefined : argument.slice(equals + 1);
    const { key, spec, negated } = flags.get(name) ?? unknownOption(name, flags, command);
    const source = { name, cwd };
    if (spec.kind === "boolean") {
      const value =
        inline === undefined || (valueFromText({ key, spec }, inline, source) as boolean);
      values.set(key, value !== negated);
      continue;
    }
    const text = inline ?? takeValue(name, args[++index]);
    const value = valueFromText({ key, spec }, text, source);
    const earlier = values.get(key);
    values.set(key, Array.isArray(earlier) ? [...earlier, ...(value as string[])] : value);
  }
  checkOperands(operands, command);
  return { values, operands };
}

function flagsOf(table: OptionTable): Map<string, KnownFlag> {
  const flags = new Map<string, KnownFlag>();
  for (const [key, spec] of Object.entries(table)) {
    for (const name of givenNames(key, spec)) flags.set(name, { key, spec, negated: false });
    if (spec.kind === "boolean") flags.set(`--no-${flagOf(key)}`, { key, spec, negated: true });
  }
  return flags;
}

function unknownOption(name: string, flags: Map<string, KnownFlag>, command: Command): never {
  const renamed = Object.keys(renamedOptions).find((key) => `--${flagOf(key)}` === name);
  if (renamed !== undefined) throw renamedOption(name, renamed);
  const foreign = command.name === "serve" ? llamaServerOption(name) : null;
  if (foreign !== null) throw foreign;
  throw invalidOption(
    `Unknown option ${name}.${didYouMean(name, similarNames(name, flags))} ${helpHint(command)}`,
    name,
  );
}

/** Any letter is near to any other. */
function similarNames(name: string, flags: Map<string, KnownFlag>): string[] {
  return name.startsWith("--") ? [...flags.keys()].filter((flag) => flag.startsWith("--")) : [];
}

function checkOperands(operands: string[], command: Command): void {
  const { min, max } = command.operands;
  if (operands.length > max) {
    const word = operands[max]!;
    throw invalidOption(`Unexpected argument ${word}. ${helpHint(command)}`, word);
  }
  if (operands.length < min) {
    throw invalidOption(
      `An argument is missing: fermata ${command.usage}. ${helpHint(command)}`,
      command.name,
    );
  }
}

function helpHint({ name }: Command): string {
  return `"fermata ${name} --help" lists all.`;
}

function takeValue(name: string, next: string | undefined): string {
  if (next === undefined) throw invalidOption(`${name} needs a value.`, name);
  if (next.startsWith("--")) {
    throw invalidOption(
      `${name} needs a value. If the value is ${next}, write ${name}=${next}.`,
      name,
    );
  }
  return next;
}

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
function llamaServerOption(name: string): FermataError | null {
  if (!Object.hasOwn(instead, name)) return null;
  const message = `${name} is an option of llama-server: ${instead[name]}.`;
  return invalidOption(message, name.replace(/^-+/, ""));
}
