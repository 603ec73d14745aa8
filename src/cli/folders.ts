/** Where files belong: those of the package, and those of the user. */

import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { homedir } from "node:os";
import { join } from "node:path";
import { compiledFile, packageRoot } from "../package-root.ts";

export const modelsDirectory = fileURLToPath(new URL("models/", packageRoot));
/** What `fermata` starts. */
export const mainProgram = fileURLToPath(compiledFile("cli/main.js"));
export const pageDirectory = fileURLToPath(new URL("ui/dist/", packageRoot));

export function packageVersion(): string {
  const manifest = JSON.parse(readFileSync(new URL("package.json", packageRoot), "utf8")) as {
    version: string;
  };
  return manifest.version;
}

/** Where `fermata pull` keeps models, unless `--models-dir` says. */
export function pulledModelsFolder(env: NodeJS.ProcessEnv): string {
  return join(userFolder("cache", env), "models");
}

type Purpose = "config" | "data" | "cache" | "state";

const linux: Record<Purpose, [variable: string, ...folder: string[]]> = {
  config: ["XDG_CONFIG_HOME", ".config"],
  data: ["XDG_DATA_HOME", ".local", "share"],
  cache: ["XDG_CACHE_HOME", ".cache"],
  state: ["XDG_STATE_HOME", ".local", "state"],
};

/** Fermata's own folder for a purpose; it may not exist yet. */
export function userFolder(
  purpose: Purpose,
  env: NodeJS.ProcessEnv = process.env,
  platform: NodeJS.Platform = process.platform,
  home: string = env["HOME"] || homedir(),
): string {
  if (platform === "win32")
    return join(env["LOCALAPPDATA"] ?? join(home, "AppData", "Local"), "fermata");
  if (platform === "darwin") {
    const folder = purpose === "cache" ? "Caches" : "Application Support";
    return join(home, "Library", folder, "fermata");
  }
  const [variable, ...folder] = linux[purpose];
  return join(env[variable] || join(home, ...folder), "fermata");
}

/**
 * Where responses and conversations are kept: a file, or the address of a Postgres database. Null: nothing is kept.
 * @param store as `--store` has it
 */
export function storePath(
  { store }: { store?: string | undefined },
  env: NodeJS.ProcessEnv = process.env,
): string | null {
  if (store === "none") return null;
  return store ?? join(userFolder("data", env), "store.sqlite");
}

/** What logins at MCP servers gave. */
export function credentialsPath(env: NodeJS.ProcessEnv = process.env): string {
  return join(userFolder("data", env), "mcp-credentials.json");
}
