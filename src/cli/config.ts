/** The configuration in force: flags, then environment, then ./fermata.json, then defaults. */

import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { FermataError } from "../errors.ts";
import { didYouMean } from "./nearest.ts";
import { valueFromJson, valueFromText } from "./option-values.ts";
import { defaultOf, optionKeys, variableOf, type OptionKey, type ServeConfig } from "./options.ts";
import { parseArguments } from "./parse-arguments.ts";

export interface ConfigInput {
  args: readonly string[];
  env: NodeJS.ProcessEnv;
  cwd: string;
}

const fileName = "fermata.json";

/** @throws FermataError invalid_option */
export function loadConfig({ args, env, cwd }: ConfigInput): ServeConfig {
  const layers = [parseArguments(args, cwd), fromEnvironment(env, cwd), fromFile(cwd)];
  const values = Object.fromEntries(
    optionKeys.map((key) => [
      key,
      layers.find((layer) => layer.has(key))?.get(key) ?? defaultOf(key),
    ]),
  );
  const config = values as ServeConfig;
  config.apiKey = config.apiKey.flatMap((key) => expandKey(key, cwd));
  checkTogether(config);
  return config;
}

function fromEnvironment(env: NodeJS.ProcessEnv, cwd: string): Map<OptionKey, unknown> {
  const values = new Map<OptionKey, unknown>();
  for (const key of optionKeys) {
    const names = key === "logLevel" ? [variableOf(key), "LOGLEVEL"] : [variableOf(key)];
    const name = names.find((candidate) => (env[candidate] ?? "") !== "");
    if (name !== undefined) values.set(key, valueFromText(key, env[name]!, { name, cwd }));
  }
  return values;
}

function fromFile(cwd: string): Map<OptionKey, unknown> {
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
  const values = new Map<OptionKey, unknown>();
  for (const [key, value] of Object.entries(json)) {
    if (!isOptionKey(key)) {
      throw invalid(`${fileName} has the unknown key "${key}".${didYouMean(key, optionKeys)}`, key);
    }
    values.set(key, valueFromJson(key, value, { name: `${fileName}: "${key}"`, cwd }));
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

function checkTogether({ mcpConfig, mcpCommand, mcpArgs }: ServeConfig): void {
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

function invalid(message: string, param: string, cause?: unknown): FermataError {
  return new FermataError("invalid_option", message, { param, cause });
}
