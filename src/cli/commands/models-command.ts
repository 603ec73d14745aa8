/** `fermata list`, `show`, `ps` and `rm`: the models of a folder, and those that a server has in memory. */

import { existsSync, rmSync } from "node:fs";
import { basename } from "node:path";
import { createInterface } from "node:readline/promises";
import { checkGguf } from "../../engine/gguf-check.ts";
import { FermataError } from "../../errors.ts";
import type { ModelFile } from "../../models/types.ts";
import { didYouMean } from "../../near-names.ts";
import { askServer, serverOptions } from "./ask-server.ts";
import type { Command, CommandContext, ParsedArguments } from "./command.ts";
import { pulledModelsFolder } from "../folders.ts";
import { ModelsFolder } from "../models-folder.ts";
import { inGroup } from "../options/option-table.ts";
import { mergeLayers, ownOptions } from "../options/option-values.ts";
import { serveOptions } from "../options/serve-options.ts";
import { bytesText } from "../progress.ts";
import { table } from "./table.ts";

const folderOptions = inGroup("Models", {
  modelsDir: {
    ...serveOptions.modelsDir,
    help: "Folder to look into. Default: where fermata pull keeps models.",
  },
});

const rmOptions = inGroup("Models", {
  ...folderOptions,
  yes: { kind: "boolean", default: false, help: "Delete without a question." },
});

const psOptions = serverOptions("Models");

export const listCommand: Command = {
  name: "list",
  summary: "List the models of a folder.",
  usage: "list [options]",
  operands: { min: 0, max: 0 },
  options: folderOptions,
  examples: `  What was pulled, and what a folder of your own has:
    fermata list
    fermata list --models-dir ~/models
`,
  run: runList,
};

export const showCommand: Command = {
  name: "show",
  summary: "Say what a model's file tells of itself.",
  usage: "show NAME [options]",
  operands: { min: 1, max: 1 },
  options: folderOptions,
  examples: `  As fermata list names it:
    fermata show Qwen3-8B-Q4_K_M
`,
  notes: `What it would take of this machine's memory is what "fermata doctor --model FILE" says.
`,
  run: runShow,
};

export const psCommand: Command = {
  name: "ps",
  summary: "List the models that a server has in memory.",
  usage: "ps [options]",
  operands: { min: 0, max: 0 },
  options: psOptions,
  examples: `  Of the server on this machine, or elsewhere:
    fermata ps
    fermata ps --url http://host:8000 --api-key KEY
`,
  run: runPs,
};

export const rmCommand: Command = {
  name: "rm",
  summary: "Delete a model's files.",
  usage: "rm NAME [options]",
  operands: { min: 1, max: 1 },
  options: rmOptions,
  examples: `  After a question, and without one:
    fermata rm Qwen3-8B-Q4_K_M
    fermata rm Qwen3-8B-Q4_K_M --yes
`,
  notes: `All parts of a split model are deleted. A server that has the model in memory goes on with it.
`,
  run: runRm,
};

/** @throws FermataError model_not_found */
async function runList(args: ParsedArguments, context: CommandContext): Promise<number> {
  const { folder, path } = openFolder(args, context);
  const files = folder.files();
  if (files.length === 0) context.err(`No GGUF model is in ${path}.\n`);
  const rows = files.map((file) => {
    const header = file.describe();
    return [
      file.name,
      bytesText(file.bytes),
      header?.architecture ?? "unreadable",
      header?.quantization ?? "",
      header?.trainedContext === undefined ? "" : `${header.trainedContext} tokens`,
    ];
  });
  if (rows.length > 0)
    context.out(table([["NAME", "SIZE", "ARCHITECTURE", "QUANTIZATION", "CONTEXT"], ...rows]));
  return 0;
}

/** @throws FermataError model_not_found | model_invalid */
async function runShow(args: ParsedArguments, context: CommandContext): Promise<number> {
  const file = findModel(args, context);
  const { architecture, trainedContext, layers, chatTemplate } = checkGguf(file.path);
  const rows = [
    ["file", file.path],
    ["size", bytesText(file.bytes)],
    ["architecture", architecture],
    ["quantization", file.describe()?.quantization ?? "not said"],
    ["layers", String(layers)],
    ["context", trainedContext === undefined ? "not said" : `${trainedContext} tokens`],
    ["template", chatTemplate === null ? "none: it completes texts" : templateText(chatTemplate)],
  ];
  context.out(table(rows));
  return 0;
}

/** @throws FermataError model_not_found | invalid_option */
async function runRm(args: ParsedArguments, context: CommandContext): Promise<number> {
  const { yes } = mergeLayers(rmOptions, [args.values]);
  const file = findModel(args, context);
  const { paths } = file;
  const what = `${file.name} (${bytesText(file.bytes)}, ${paths.join(", ")})`;
  if (!yes && !(await isWanted(`Delete ${what}? [y/N] `, context))) {
    context.err("Nothing was deleted.\n");
    return 1;
  }
  // A pulled file has its checksum beside it.
  for (const path of paths.flatMap((part) => [part, `${part}.json`]))
    if (existsSync(path)) rmSync(path);
  context.out(`Deleted ${what}.\n`);
  return 0;
}

interface ServedModelState {
  id: string;
  state: string;
  progress: number;
  size: number;
  quantization: string;
  context_length: number | null;
  uses: number;
  leaves_at: string | null;
  is_pinned: boolean;
}

/** @throws FermataError endpoint_failed */
async function runPs(args: ParsedArguments, context: CommandContext): Promise<number> {
  const { out, err } = context;
  const { models } = (await askServer("/api/models", args, context)) as {
    models: ServedModelState[];
  };
  const present = models.filter(({ state }) => state !== "unloaded");
  if (present.length === 0) err("No model is in memory.\n");
  const rows = present.map((model) => [
    model.id,
    model.state === "loading" ? `loading, ${Math.round(model.progress * 100)} %` : model.state,
    bytesText(model.size),
    model.context_length === null ? "" : `${model.context_length} tokens`,
    String(model.uses),
    leavingText(model),
  ]);
  if (rows.length > 0)
    out(table([["NAME", "STATE", "SIZE", "CONTEXT", "USED BY", "LEAVES"], ...rows]));
  return 0;
}

function leavingText({ is_pinned: isPinned, uses, leaves_at: at }: ServedModelState): string {
  if (isPinned) return "never";
  if (at !== null) return at;
  return uses > 0 ? "not while it is used" : "when its room is needed";
}

function openFolder(
  { values }: ParsedArguments,
  context: CommandContext,
): { folder: ModelsFolder; path: string } {
  const { modelsDir } = ownOptions(folderOptions, values, context);
  const path = modelsDir ?? pulledModelsFolder(context.env);
  if (modelsDir === undefined && !existsSync(path))
    throw new FermataError(
      "model_not_found",
      `No model was pulled yet: ${path} is not there. "fermata pull OWNER/NAME" fetches one; --models-dir names another folder.`,
      { param: "modelsDir" },
    );
  return { folder: new ModelsFolder(path), path };
}

function findModel(args: ParsedArguments, context: CommandContext): ModelFile {
  const { folder, path } = openFolder(args, context);
  const wanted = args.operands[0]!;
  const files = folder.files();
  const found = files.find(({ name }) => name === wanted || `${name}.gguf` === wanted);
  if (found !== undefined) return found;
  const near = didYouMean(
    wanted,
    files.map(({ name }) => name),
  );
  const message = `There is no model ${wanted} in ${path}.${near} "fermata list" lists them.`;
  throw new FermataError("model_not_found", message, { param: basename(wanted) });
}

async function isWanted(question: string, { err }: CommandContext): Promise<boolean> {
  if (!process.stdin.isTTY) {
    err("Without a terminal nobody can be asked: give --yes.\n");
    return false;
  }
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  try {
    return /^y(es)?$/i.test((await terminal.question(question)).trim());
  } finally {
    terminal.close();
  }
}

function templateText(template: string): string {
  const takesTools = /\btools\b/.test(template);
  return `${template.length} characters, ${takesTools ? "with" : "without"} a section for tools`;
}
