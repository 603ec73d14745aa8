/** What `--models-dir` has: each GGUF model below it, found again when files come and go; and the default among them. */

import { existsSync, readdirSync, realpathSync, statSync } from "node:fs";
import { join, relative } from "node:path";
import { checkGguf } from "../engine/gguf-check.ts";
import { FermataError } from "../errors.ts";
import type { ModelFile, ModelHeader } from "../models/types.ts";
import { didYouMean } from "../near-names.ts";
import { modelsDirectory } from "./folders.ts";
import {
  chooseModel,
  groupModelFiles,
  modelCreated,
  modelName,
  type ModelFiles,
} from "./model-files.ts";
import type { ServeConfig } from "./options/serve-options.ts";

/** A listing is as old as this at most. */
const listingMs = 1000;
/** OWNER/NAME/REVISION/path, as pulled models lie. */
const maxDepth = 6;

export class ModelsFolder {
  readonly #folder: string;
  readonly #headers = new Map<string, ModelHeader | null>();
  #files: ModelFile[] = [];
  #readAt = -Infinity;

  /** @throws FermataError model_not_found, if it cannot be read */
  constructor(folder: string) {
    this.#folder = folder;
    this.files();
  }

  /** In order of their names: the file's, or its path below the folder where two files have one name. */
  files(): ModelFile[] {
    if (performance.now() - this.#readAt < listingMs) return this.#files;
    const groups = groupModelFiles(this.#paths()).filter(({ missing }) => missing === 0);
    const names = groups.map(({ first }) => modelName(first));
    this.#files = groups
      .flatMap((group, at) => {
        const isAmbiguous = names.indexOf(names[at]!) !== names.lastIndexOf(names[at]!);
        return this.#file(group, isAmbiguous ? this.#longName(group.first) : names[at]!) ?? [];
      })
      .toSorted((a, b) => (a.name < b.name ? -1 : 1));
    this.#readAt = performance.now();
    return this.#files;
  }

  #paths(): string[] {
    try {
      return filesBelow(this.#folder, maxDepth);
    } catch (cause) {
      const reason = (cause as Error).message;
      const message = `--models-dir ${this.#folder} cannot be read: ${reason}. Name a folder with GGUF files.`;
      throw new FermataError("model_not_found", message, { param: "modelsDir", cause });
    }
  }

  /** Null: it has just gone. */
  #file({ first: path, paths, quantization }: ModelFiles, name: string): ModelFile | null {
    try {
      const bytes = paths.reduce((sum, part) => sum + statSync(part).size, 0);
      const created = modelCreated(path);
      const describe = (): ModelHeader | null =>
        this.#describe(path, quantization, `${path} ${bytes} ${created}`);
      return { name, path, paths, bytes, created, describe };
    } catch {
      return null;
    }
  }

  #describe(path: string, quantization: string | null, key: string): ModelHeader | null {
    const known = this.#headers.get(key);
    if (known !== undefined) return known;
    const header = readHeader(path, quantization);
    this.#headers.set(key, header);
    return header;
  }

  #longName(path: string): string {
    return relative(this.#folder, path)
      .replaceAll("\\", "/")
      .replace(/\.gguf$/i, "");
  }
}

/**
 * Folders below that cannot be read, or have just gone, are passed over: their owner is not asked here. Links are
 * followed behind everything else, and no folder is read twice: a link to one beside it gives its models no other names.
 */
function filesBelow(top: string, depth: number): string[] {
  const seen = new Set<string>();
  const files: string[] = [];
  const linked: (() => void)[] = [];
  const readBelow = (folder: string, levels: number): void => {
    const real = realpathSync(folder);
    if (seen.has(real)) return;
    seen.add(real);
    for (const entry of readdirSync(folder, { withFileTypes: true })) {
      const path = join(folder, entry.name);
      const isLinked = entry.isSymbolicLink() && isFolder(path);
      if (!isLinked && !entry.isDirectory()) files.push(path);
      else if (isLinked && levels > 1) linked.push(() => tryBelow(path, levels - 1));
      else if (levels > 1) tryBelow(path, levels - 1);
    }
  };
  const tryBelow = (folder: string, levels: number): void => {
    try {
      readBelow(folder, levels);
    } catch {
      // See above.
    }
  };
  readBelow(top, depth);
  for (let next = linked.shift(); next !== undefined; next = linked.shift()) next();
  return files;
}

/** False of a link to nothing, to itself, or to what may not be read. */
function isFolder(path: string): boolean {
  try {
    return statSync(path).isDirectory();
  } catch {
    return false;
  }
}

/** Null: one model is served. @throws FermataError model_not_found, if it cannot be read */
export function modelsFolderOf({ modelsDir }: ServeConfig): ModelsFolder | null {
  return modelsDir === undefined ? null : new ModelsFolder(modelsDir);
}

/** The default model: what `--model` says, or the first of `--models-dir`, or the one that comes with Fermata. */
export function defaultModel(
  config: ServeConfig,
  folder: ModelsFolder | null = modelsFolderOf(config),
): ModelFile {
  const files = folder?.files() ?? [];
  const { model, modelsDir } = config;
  const [alias] = config.alias;
  const called = (file: ModelFile): ModelFile => ({ ...file, name: alias ?? file.name });
  if (model === undefined && folder !== null) {
    if (files[0] !== undefined) return called(files[0]);
    const message = `--models-dir ${modelsDir} has no GGUF model. Put one there, or name another with --model FILE.`;
    throw new FermataError("model_not_found", message, { param: "modelsDir" });
  }
  const isPath = model !== undefined && existsSync(model);
  const named = files.find(({ name, path }) => (isPath ? path === model : name === nameIn(model)));
  if (named !== undefined) return called(named);
  if (folder !== null && model !== undefined && !isPath) {
    const names = files.map(({ name }) => name);
    const near = didYouMean(nameIn(model), names);
    const message = `There is no model ${nameIn(model)} in ${modelsDir}.${near} There are ${names.join(", ")}.`;
    throw new FermataError("model_not_found", message, { param: "model" });
  }
  const path = chooseModel(model, modelsDirectory);
  return modelFile(path, alias ?? modelName(path));
}

/** Options that are paths are absolute; what was written is the end of it. */
function nameIn(path = ""): string {
  return path.slice(path.lastIndexOf("/") + 1).replace(/\.gguf$/i, "");
}

/** Of one file, in a folder or not. */
export function modelFile(path: string, name: string): ModelFile {
  const [group] = groupModelFiles([path]);
  // Loading it says what is wrong with it.
  const { size = 0, mtimeMs = 0 } = statSync(path, { throwIfNoEntry: false }) ?? {};
  return {
    name,
    path,
    paths: [path],
    bytes: size,
    created: Math.floor(mtimeMs / 1000),
    describe: () => readHeader(path, group?.quantization ?? null),
  };
}

function readHeader(path: string, quantization: string | null): ModelHeader | null {
  try {
    const { architecture, trainedContext, chatTemplate, fileType } = checkGguf(path);
    return { architecture, quantization: quantization ?? fileType, trainedContext, chatTemplate };
  } catch {
    return null;
  }
}
