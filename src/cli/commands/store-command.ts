/** `fermata store`: the file that keeps responses and conversations, checked, copied and read out. */

import { resolve } from "node:path";
import { isPostgresAddress } from "../../store/postgres/address.ts";
import { type FermataError, invalidOption } from "../../errors.ts";
import { didYouMean } from "../../near-names.ts";
import type { Command, CommandContext, ParsedArguments } from "./command.ts";
import { storePath } from "../folders.ts";
import { inGroup } from "../options/option-table.ts";
import { ownOptions } from "../options/option-values.ts";
import { serveOptions } from "../options/serve-options.ts";

const actions = ["check", "backup", "export"];

const options = inGroup("Store", {
  store: serveOptions.store,
  setAside: {
    kind: "boolean",
    default: false,
    help: "check: rename a store that is broken, so that the next server begins a new one. Nothing is deleted.",
  },
});

export const storeCommand: Command = {
  name: "store",
  summary: "Check, copy or read out what is kept of responses and conversations.",
  usage: "store check|backup|export [FILE] [options]",
  operands: { min: 1, max: 2, choices: actions },
  options,
  examples: `  Is the store sound? What is wrong, and exit code 1, if not:
    fermata store check
  Put a broken one aside under another name, which is printed:
    fermata store check --set-aside
  A copy of this moment, while servers go on:
    fermata store backup store-2026-11-23.sqlite
  All of it as one JSON object a line:
    fermata store export > store.jsonl
`,
  notes: `backup writes FILE, which must not exist; serve it with --store FILE. The lines of an export have a
kind: response, conversation or branched_conversation (of the page and of fermata chat). They hold
what users wrote, as the store and its copies do.
`,
  run: runStore,
};

/** Resolves to the exit code. @throws FermataError invalid_option | store_invalid | store_in_use */
async function runStore(
  { values, operands }: ParsedArguments,
  context: CommandContext,
): Promise<number> {
  const { cwd, env, out } = context;
  const given = ownOptions(options, values, context);
  const path = storePath({ store: given.store }, env);
  if (path === null)
    throw invalidOption('"none" is no store. Name its file with --store.', "store");
  if (isPostgresAddress(path)) throw needsPostgresTools();
  const [action, file] = operands as [string, string?];
  if ((action === "backup") !== (file !== undefined))
    throw invalidOption(
      action === "backup"
        ? "Name the file to write."
        : `store ${action} takes no file. Write --store FILE to name the store.`,
      "FILE",
    );
  const { backUpStore, checkStore, setStoreAside, storeEntries } =
    await import("../../store/sqlite/store-file.ts");
  switch (action) {
    case "check": {
      const problems = checkStore(path);
      if (problems.length === 0) out(`${path} is sound.\n`);
      else out(`${path} is broken:\n${problems.map((problem) => `  ${problem}\n`).join("")}`);
      if (problems.length === 0) return 0;
      if (given.setAside) out(`It is now ${setStoreAside(path)}.\n`);
      return 1;
    }
    case "backup": {
      const target = resolve(cwd, file!);
      backUpStore(path, target);
      out(`${target}\n`);
      return 0;
    }
    case "export":
      for (const entry of storeEntries(path)) out(`${JSON.stringify(entry)}\n`);
      return 0;
    default:
      throw invalidOption(`There is no store ${action}.${didYouMean(action, actions)}`, action);
  }
}

/** Its server has programs for all of it. */
function needsPostgresTools(): FermataError {
  const message =
    "fermata store is for a store that is a file. Of a Postgres database, pg_dump makes a copy and pg_amcheck checks it.";
  return invalidOption(message, "store");
}
