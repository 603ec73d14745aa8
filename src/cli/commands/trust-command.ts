/** `fermata trust`: folders whose fermata.json may run and open things. */

import { existsSync, realpathSync } from "node:fs";
import { resolve } from "node:path";
import { invalidOption } from "../../errors.ts";
import type { Command, CommandContext, ParsedArguments } from "./command.ts";
import { readFolderFile } from "../options/config.ts";
import { inGroup } from "../options/option-table.ts";
import { mergeLayers } from "../options/option-values.ts";
import { TrustedFolders } from "../trusted-folders.ts";

const options = inGroup("Trust", {
  remove: {
    kind: "boolean",
    default: false,
    help: "Take the trust back.",
  },
  list: {
    kind: "boolean",
    default: false,
    help: "List the folders that are trusted.",
  },
});

export const trustCommand: Command = {
  name: "trust",
  summary: "Let the fermata.json of a folder name programs, files and keys.",
  usage: "trust [FOLDER] [options]",
  operands: { min: 0, max: 1 },
  options,
  examples: `  After you have read ./fermata.json:
    fermata trust
  No longer:
    fermata trust --remove
`,
  notes: `Keys that run, open, publish or delete something (mcpCommand, model, host, apiKey, store, ...)
count in the fermata.json of a trusted folder alone; limits count in every folder. When the file
changes, or the mcpConfig, agents or chatTemplate that it names, the folder needs your trust again.
A file that you name with --config needs none.
`,
  run: runTrust,
};

/** Resolves to the exit code. @throws FermataError invalid_option */
async function runTrust(
  { values, operands }: ParsedArguments,
  { cwd, env, out }: CommandContext,
): Promise<number> {
  const trusted = new TrustedFolders(env);
  const { remove, list } = mergeLayers(options, [values]);
  if (list) {
    for (const folder of Object.keys(trusted.all())) out(`${folder}\n`);
    return 0;
  }
  const given = resolve(cwd, operands[0] ?? ".");
  // A folder that is gone can still lose its trust.
  const folder = existsSync(given) ? realpathSync(given) : given;
  if (remove) {
    if (!trusted.remove(folder)) throw invalidOption(`${folder} was not trusted.`, "FOLDER");
    out(`${folder} is no longer trusted.\n`);
    return 0;
  }
  const file = readFolderFile(folder);
  if (file === null) throw invalidOption(`${folder} has no fermata.json.`, "FOLDER");
  trusted.add(folder, file.digest);
  const lines = file.closedKeys.map((key) => `  ${key}: ${printable(file.values.get(key))}\n`);
  out(`${folder} is trusted until its fermata.json changes.\n${lines.join("")}`);
  return 0;
}

/** Nothing that a terminal obeys: the file is another person's. */
function printable(value: unknown): string {
  return JSON.stringify(value).replaceAll(
    /[\p{C}\p{Zl}\p{Zp}]/gu,
    (character) => `\\u{${character.codePointAt(0)!.toString(16)}}`,
  );
}
