/** The configuration in force: flags, then environment, then a file, then defaults. */

import { readFileSync, realpathSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import {
  type ConfigKind,
  parseConfig,
  readConfigFile,
  type ConfigReader,
} from "../../config-reader.ts";
import { invalidOption } from "../../errors.ts";
import { isJsonObject } from "../../json.ts";
import { didYouMean } from "../../near-names.ts";
import { needsKey } from "../access.ts";
import { givenTemplate } from "../chat-template.ts";
import { flagOf, variableOf } from "./option-table.ts";
import { fromEnvironment, type Layer, mergeLayers, valueFromJson } from "./option-values.ts";
import { type OptionKey, optionKeys, type ServeConfig, serveOptions } from "./serve-options.ts";
import { renamedOption, renamedOptions } from "./parse-arguments.ts";
import { contentDigest, TrustedFolders } from "../trusted-folders.ts";

const fileName = "fermata.json";
const kind: ConfigKind = { title: "", code: "invalid_option" };

/** `chatTemplate` is the text of what was named. @throws FermataError invalid_option */
export function configOf(flags: Layer, env: NodeJS.ProcessEnv, cwd: string): ServeConfig {
  const layers = configLayers(flags, env, cwd).map(({ values }) => values);
  const config = mergeLayers(serveOptions, layers);
  config.apiKey = config.apiKey.flatMap((key) => expandKey(key, cwd));
  dropOutranked(config, layers);
  checkTogether(config);
  config.corsOrigin.forEach(checkOrigin);
  checkReplica(config.replica);
  config.chatTemplate = givenTemplate(config.chatTemplate);
  return config;
}

/**
 * Where options of `fermata serve` come from, the first that has one counts. `--config FILE` stands
 * for ./fermata.json, and whoever names a file trusts it.
 */
export function configLayers(
  flags: Layer,
  env: NodeJS.ProcessEnv,
  cwd: string,
): { name: string; values: Layer }[] {
  const variables = fromEnvironment(serveOptions, env, cwd);
  const renamed = Object.keys(renamedOptions).find((key) => (env[variableOf(key)] ?? "") !== "");
  if (renamed !== undefined) throw renamedOption(variableOf(renamed), renamed);
  const named = (flags.get("config") ?? variables.get("config")) as string | undefined;
  const file =
    named === undefined
      ? { name: fileName, values: fromFolder(cwd, env) }
      : { name: named, values: optionsIn(readConfigFile(kind, named), named) };
  return [{ name: "flag", values: flags }, { name: "environment", values: variables }, file];
}

/** `--hf` on the command line outranks a model in fermata.json, and the other way round. */
function dropOutranked(config: ServeConfig, layers: readonly Layer[]): void {
  const outranks = (one: OptionKey, other: OptionKey): boolean => {
    const [first, second] = [one, other].map((key) =>
      layers.findIndex((layer) => layer.has(key as OptionKey)),
    ) as [number, number];
    return first >= 0 && first < second;
  };
  if (outranks("hf", "model")) config.model = undefined;
  if (!outranks("model", "hf")) return;
  config.hf = undefined;
  config.file = undefined;
}

/** A fermata.json, as it stands in a folder. */
interface FolderFile {
  values: Layer;
  /** Keys that count only if the user trusts the folder. */
  closedKeys: string[];
  /** What consent is bound to. */
  digest: string;
}

/** Null: there is none. @throws FermataError invalid_option */
export function readFolderFile(folder: string): FolderFile | null {
  const path = join(folder, fileName);
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === "ENOENT") return null;
    throw invalidOption(
      `${fileName} cannot be read: ${(cause as Error).message}.`,
      fileName,
      cause,
    );
  }
  const values = optionsIn(parseConfig(kind, fileName, text), path);
  const closedKeys = [...values.keys()].filter(
    (key) => !("fromFolder" in serveOptions[key as OptionKey]),
  );
  return { values, closedKeys, digest: contentDigest(text, values) };
}

/** @throws FermataError invalid_option: a key needs trust that the folder has not */
function fromFolder(cwd: string, env: NodeJS.ProcessEnv): Layer {
  const file = readFolderFile(cwd);
  if (file === null) return new Map();
  const [key] = file.closedKeys;
  if (key === undefined) return file.values;
  const trusted = new TrustedFolders(env).all()[realpathSync(cwd)];
  if (trusted === file.digest) return file.values;
  const problem =
    trusted === undefined
      ? "is only read in folders that you trust, because it can run, open or publish something"
      : "needs your trust again, because this file or a file that it names has changed";
  const remedy = `Read the file, then run "fermata trust", or name it: --config ${fileName}.`;
  throw invalidOption(`${fileName}: "${key}" ${problem}. ${remedy}`, flagOf(key));
}

/** @param path of the file: what its paths are relative to */
function optionsIn(file: ConfigReader, path: string): Map<string, unknown> {
  if (!isJsonObject(file.value)) throw file.fails("must hold a JSON object");
  const cwd = dirname(path);
  const values = new Map<string, unknown>();
  for (const [key, { value, place }] of file.entries()) {
    if (key in renamedOptions) throw renamedOption(place, key);
    const name = path.endsWith(fileName) ? fileName : path;
    if (!isOptionKey(key)) {
      throw invalidOption(
        `${name} has the unknown key "${key}".${didYouMean(key, optionKeys)}`,
        key,
      );
    }
    if (key === "config") {
      const message = `${name}: "config" names such a file and cannot stand in one. Leave it out.`;
      throw invalidOption(message, key);
    }
    values.set(key, valueFromJson({ key, spec: serveOptions[key] }, value, { name: place, cwd }));
  }
  return values;
}

function isOptionKey(key: string): key is OptionKey {
  return Object.hasOwn(serveOptions, key);
}

/** `@FILE` stands for the lines of a file, so that keys need not be on the command line. */
export function expandKey(given: string, cwd: string): string[] {
  const key = given.trim();
  if (!key.startsWith("@")) return [key];
  const path = key.slice(1);
  try {
    const keys = readFileSync(resolve(cwd, path), "utf8")
      .split(/\r?\n/)
      .map((line) => line.trim());
    const found = keys.filter((line) => line !== "" && !line.startsWith("#"));
    if (found.length > 0) return found;
  } catch (cause) {
    throw invalidOption(
      `--api-key: ${path} cannot be read: ${(cause as Error).message}.`,
      "api-key",
      cause,
    );
  }
  // An empty file must not open the server to everybody.
  throw invalidOption(`--api-key: ${path} holds no key.`, "api-key");
}

function checkTogether(config: ServeConfig): void {
  const { mcpConfig, mcpCommand, mcpArgs, model, hf, file } = config;
  const { alias, pooling, embeddingModel, nPredict, auth } = config;
  if (model !== undefined && hf !== undefined) {
    throw invalidOption("--model and --hf exclude each other. Name one model.", "hf");
  }
  if (file !== undefined && hf === undefined) throw invalidOption("--file needs --hf.", "file");
  if (!auth && needsKey(config))
    throw invalidOption("--no-auth and keys exclude each other. Give one.", "api-key");
  if (pooling !== undefined && embeddingModel === undefined)
    throw invalidOption("--pooling needs --embedding-model.", "pooling");
  if (config.keepAlive >= 0 && config.modelsDir === undefined)
    throw invalidOption(
      "--keep-alive needs --models-dir: a single model stays loaded.",
      "keep-alive",
    );
  checkDrafts(config);
  if (nPredict === 0)
    throw invalidOption("--n-predict must be at least 1, or -1 for no limit.", "n-predict");
  if (alias.includes("")) throw invalidOption("--alias holds an empty name.", "alias");
  if (mcpConfig !== undefined && mcpCommand !== undefined) {
    throw invalidOption(
      "--mcp-config and --mcp-command exclude each other. Put the command into the file.",
      "mcp-command",
    );
  }
  if (mcpCommand === undefined && mcpArgs.length > 0) {
    throw invalidOption("--mcp-args needs --mcp-command.", "mcp-args");
  }
}

/** @throws FermataError invalid_option */
function checkDrafts(config: ServeConfig): void {
  const { drafts, draftModel, draftMtp, deterministic, modelsDir } = config;
  const given = Object.entries({
    "draft-mtp": draftMtp,
    "draft-model": draftModel !== undefined,
    drafts,
  }).flatMap(([option, isGiven]) => (isGiven ? [option] : []));
  const [option, other] = given;
  if (option === undefined) return;
  if (drafts === false)
    throw invalidOption(`--no-drafts and --${option} exclude each other. Give one.`, option);
  if (other === "draft-model")
    throw invalidOption(`--${option} and --${other} exclude each other. Give one.`, option);
  if (deterministic)
    throw invalidOption(`--${option} and --deterministic exclude each other. Give one.`, option);
  if (option !== "drafts" && modelsDir !== undefined)
    throw invalidOption(`--${option} needs a single model: --models-dir excludes it.`, option);
}

/** It stands in ids, in front of a dot, and proxies name their servers so. */
function checkReplica(name: string | undefined): void {
  if (name === undefined || /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/.test(name)) return;
  throw invalidOption(
    `--replica: "${name}" is not a replica's name. Use lower-case letters, digits and, inside, hyphens (at most 63).`,
    "replica",
  );
}

/** As browsers send it, without path and default port. Programs have schemes of their own; pages of files are `null`. */
function checkOrigin(origin: string): void {
  if (origin === "*" || origin === "null") return;
  const parts = /^(?<scheme>[a-z][a-z0-9+.-]*):\/\/[^/?#\s]+$/u.exec(origin);
  const isWeb = ["http", "https"].includes(parts?.groups?.["scheme"] ?? "");
  const likely = likelyOrigin(origin);
  if (parts !== null && (!isWeb || likely === origin)) return;
  throw invalidOption(
    `--cors-origin: "${origin}" is not an origin. Write scheme and host, with the port if there is one${likely === null ? "" : `: ${likely}`}; * for all.`,
    "cors-origin",
  );
}

function likelyOrigin(text: string): string | null {
  try {
    return new URL(/^https?:\/\//iu.test(text) ? text : `http://${text}`).origin;
  } catch {
    return null;
  }
}
