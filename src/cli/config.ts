/** The configuration in force: flags, then environment, then ./fermata.json, then defaults. */

import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { FermataError } from "../errors.ts";
import { givenTemplate } from "./chat-template.ts";
import { didYouMean } from "./nearest.ts";
import { fromEnvironment, type Layer, mergeLayers } from "./option-layers.ts";
import { valueFromJson } from "./option-values.ts";
import { optionKeys, serveOptions, type OptionKey, type ServeConfig } from "./options.ts";

const fileName = "fermata.json";

/** `chatTemplate` is the text of what was named. @throws FermataError invalid_option */
export function configOf(flags: Layer, env: NodeJS.ProcessEnv, cwd: string): ServeConfig {
  const layers = configLayers(flags, env, cwd).map(({ values }) => values);
  const config = mergeLayers(serveOptions, layers);
  config.apiKey = config.apiKey.flatMap((key) => expandKey(key, cwd));
  dropOutranked(config, layers);
  checkTogether(config);
  config.corsOrigin.forEach(checkOrigin);
  config.chatTemplate = givenTemplate(config);
  return config;
}

/** Where options of `fermata serve` come from, the first that has one counts. */
export function configLayers(
  flags: Layer,
  env: NodeJS.ProcessEnv,
  cwd: string,
): { name: string; values: Layer }[] {
  return [
    { name: "flag", values: flags },
    { name: "environment", values: fromEnvironment(serveOptions, env, cwd) },
    { name: fileName, values: fromFile(cwd) },
  ];
}

/** `--hf` on the command line outranks a model in fermata.json, and the other way round; so do templates. */
function dropOutranked(config: ServeConfig, layers: readonly Layer[]): void {
  const outranks = (one: OptionKey, other: OptionKey): boolean => {
    const [first, second] = [one, other].map((key) =>
      layers.findIndex((layer) => layer.has(key as OptionKey)),
    ) as [number, number];
    return first >= 0 && first < second;
  };
  if (outranks("hf", "model")) config.model = undefined;
  if (outranks("chatTemplate", "chatTemplateFile")) config.chatTemplateFile = undefined;
  if (outranks("chatTemplateFile", "chatTemplate")) config.chatTemplate = undefined;
  if (!outranks("model", "hf")) return;
  config.hf = undefined;
  config.file = undefined;
}

function fromFile(cwd: string): Map<string, unknown> {
  const path = join(cwd, fileName);
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === "ENOENT") return new Map();
    throw invalid(`${fileName} cannot be read: ${(cause as Error).message}.`, fileName, cause);
  }
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch (cause) {
    throw invalid(`${fileName} is not valid JSON: ${(cause as Error).message}.`, fileName, cause);
  }
  if (typeof json !== "object" || json === null || Array.isArray(json)) {
    throw invalid(`${fileName} must hold a JSON object.`, fileName);
  }
  const values = new Map<string, unknown>();
  for (const [key, value] of Object.entries(json)) {
    if (!isOptionKey(key)) {
      throw invalid(`${fileName} has the unknown key "${key}".${didYouMean(key, optionKeys)}`, key);
    }
    const option = { key, spec: serveOptions[key] };
    values.set(key, valueFromJson(option, value, { name: `${fileName}: "${key}"`, cwd }));
  }
  return values;
}

function isOptionKey(key: string): key is OptionKey {
  return (optionKeys as string[]).includes(key);
}

/** `@FILE` stands for the lines of a file, so that keys need not be on the command line. */
function expandKey(key: string, cwd: string): string[] {
  if (!key.startsWith("@")) return [key];
  const path = key.slice(1);
  try {
    const keys = readFileSync(resolve(cwd, path), "utf8")
      .split(/\r?\n/)
      .map((line) => line.trim());
    const found = keys.filter((line) => line !== "" && !line.startsWith("#"));
    if (found.length > 0) return found;
  } catch (cause) {
    throw invalid(
      `--api-key: ${path} cannot be read: ${(cause as Error).message}.`,
      "api-key",
      cause,
    );
  }
  // An empty file must not open the server to everybody.
  throw invalid(`--api-key: ${path} holds no key.`, "api-key");
}

function checkTogether(config: ServeConfig): void {
  const { mcpConfig, mcpCommand, mcpArgs, model, hf, file } = config;
  const { alias, chatTemplate, chatTemplateFile, pooling, embeddingModel, nPredict } = config;
  if (model !== undefined && hf !== undefined) {
    throw invalid("--model and --hf exclude each other. Name one model.", "hf");
  }
  if (file !== undefined && hf === undefined) throw invalid("--file needs --hf.", "file");
  if (chatTemplate !== undefined && chatTemplateFile !== undefined) {
    throw invalid(
      "--chat-template and --chat-template-file exclude each other. Give one.",
      "chat-template-file",
    );
  }
  if (pooling !== undefined && embeddingModel === undefined)
    throw invalid("--pooling needs --embedding-model.", "pooling");
  if (nPredict === 0)
    throw invalid("--n-predict must be at least 1, or -1 for no limit.", "n-predict");
  if (alias.includes("")) throw invalid("--alias holds an empty name.", "alias");
  if (mcpConfig !== undefined && mcpCommand !== undefined) {
    throw invalid(
      "--mcp-config and --mcp-command exclude each other. Put the command into the file.",
      "mcp-command",
    );
  }
  if (mcpCommand === undefined && mcpArgs.length > 0) {
    throw invalid("--mcp-args needs --mcp-command.", "mcp-args");
  }
}

/** As browsers send it, without path and default port. Programs have schemes of their own; pages of files are `null`. */
function checkOrigin(origin: string): void {
  if (origin === "*" || origin === "null") return;
  const parts = /^(?<scheme>[a-z][a-z0-9+.-]*):\/\/[^/?#\s]+$/u.exec(origin);
  const isWeb = ["http", "https"].includes(parts?.groups?.["scheme"] ?? "");
  const likely = likelyOrigin(origin);
  if (parts !== null && (!isWeb || likely === origin)) return;
  throw invalid(
    `--cors-origin: "${origin}" is no origin. Write scheme and host, with the port if there is one${likely === null ? "" : `: ${likely}`}; * for all.`,
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

function invalid(message: string, param: string, cause?: unknown): FermataError {
  return new FermataError("invalid_option", message, { param, cause });
}
