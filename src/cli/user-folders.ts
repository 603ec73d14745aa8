/** Where a user's files belong, by the system's habits. */

import { homedir } from "node:os";
import { join } from "node:path";

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
