/** `--api-keys-file`: named keys, read again on SIGHUP and when the file changes. */

import { unwatchFile, watchFile } from "node:fs";
import { type ConfigReader, readConfigFile } from "../config-reader.ts";
import {
  type ApiKey,
  ApiKeys,
  type KeyScope,
  keyScopes,
  plainKey,
} from "../server/http/api-keys.ts";
import type { Logger } from "pino";
import type { ServeConfig } from "./options/serve-options.ts";

const watchedEveryMs = 1000;

/** @throws FermataError invalid_option: the file cannot be read, or says what no key can be */
export function readKeysFile(path: string, env: NodeJS.ProcessEnv): ApiKey[] {
  const file = readConfigFile({ title: "--api-keys-file ", code: "invalid_option" }, path);
  const keys = file.entries().map(([name, entry]) => readKey(name, entry.expanded(["key"], env)));
  if (new Set(keys.map(({ key }) => key)).size < keys.length)
    throw file.fails("has the same key under two names");
  if (keys.length > 0) return keys;
  throw file.fails('has no key; write {"name": {"key": "…", "scopes": ["infer"]}}');
}

function readKey(name: string, entry: ConfigReader): ApiKey {
  entry.knows(["key", "scopes", "expires"]);
  const scopes = entry.has("scopes") ? entry.at("scopes").texts() : keyScopes;
  const unknown = scopes.find((scope) => !keyScopes.includes(scope as KeyScope));
  if (unknown !== undefined || scopes.length === 0)
    throw entry.at("scopes").fails(`must have one or more of ${keyScopes.join(", ")}`);
  const expires = entry.has("expires") ? Date.parse(entry.text("expires")) : null;
  if (Number.isNaN(expires))
    throw entry.at("expires").fails('must be a date, as "2027-01-31" or "2027-01-31T12:00:00Z"');
  return { key: entry.text("key"), name, scopes: scopes as KeyScope[], expiresAt: expires };
}

/** The keys of options and file. A file that can no longer be read leaves the keys as they were. */
export class WatchedKeys {
  readonly keys: ApiKeys;
  readonly #config: Pick<ServeConfig, "apiKey" | "apiKeysFile">;
  readonly #log: Pick<Logger, "info" | "error">;
  readonly reload = (): void => {
    if (this.#config.apiKeysFile === undefined) return;
    try {
      this.keys.replace(this.#read());
      this.#log.info({ file: this.#config.apiKeysFile }, "API keys read again");
    } catch (error) {
      this.#log.error({ err: error }, "API keys not read again; the keys from before are valid");
    }
  };

  constructor(
    config: Pick<ServeConfig, "apiKey" | "apiKeysFile">,
    log: Pick<Logger, "info" | "error">,
  ) {
    this.#config = config;
    this.#log = log;
    this.keys = new ApiKeys(this.#read());
    if (config.apiKeysFile !== undefined)
      watchFile(config.apiKeysFile, { interval: watchedEveryMs, persistent: false }, this.reload);
  }

  async close(): Promise<void> {
    if (this.#config.apiKeysFile !== undefined) unwatchFile(this.#config.apiKeysFile, this.reload);
  }

  #read(): ApiKey[] {
    const { apiKey, apiKeysFile } = this.#config;
    const named = apiKeysFile === undefined ? [] : readKeysFile(apiKeysFile, process.env);
    return [...apiKey.map(plainKey), ...named];
  }
}
