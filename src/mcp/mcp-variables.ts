/** `${NAME}`, `${env:NAME}` and `${NAME:-default}` in the strings of a configuration. */

const reference = /\$\{(?:env:)?([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}/g;

/** @returns the names of variables that are not set and have no default, or the text */
export function expandVariables(
  text: string,
  environment: NodeJS.ProcessEnv,
): { text: string } | { missing: string[] } {
  const missing: string[] = [];
  const expanded = text.replace(reference, (_whole, name: string, fallback: string | undefined) => {
    const value = environment[name];
    // As in a shell, an empty variable takes the default.
    if (value !== undefined && (value !== "" || fallback === undefined)) return value;
    if (fallback === undefined) missing.push(name);
    return fallback ?? "";
  });
  return missing.length > 0 ? { missing } : { text: expanded };
}
