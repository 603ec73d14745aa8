/** The environment of an MCP server: enough to find programs and write files, nothing of ours. */

const posixNames = ["PATH", "HOME", "LANG", "LANGUAGE", "TMPDIR", "TEMP", "TMP"];
const windowsNames = [
  "PATH",
  "PATHEXT",
  "USERPROFILE",
  "HOMEDRIVE",
  "HOMEPATH",
  "APPDATA",
  "LOCALAPPDATA",
  "LANG",
  "TEMP",
  "TMP",
  "SYSTEMROOT",
  "SYSTEMDRIVE",
  "COMSPEC",
];

/** Path, home, locale and temp of `own`, then `configured`. */
export function mcpEnvironment(
  own: NodeJS.ProcessEnv,
  configured: Record<string, string>,
  platform: NodeJS.Platform = process.platform,
): Record<string, string> {
  const names = new Set(platform === "win32" ? windowsNames : posixNames);
  const environment: Record<string, string> = {};
  for (const [name, value] of Object.entries(own)) {
    const canonical = platform === "win32" ? name.toUpperCase() : name;
    if (value !== undefined && (names.has(canonical) || canonical.startsWith("LC_")))
      environment[name] = value;
  }
  return Object.assign(environment, configured);
}
