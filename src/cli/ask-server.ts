/** Asks a server that runs: the one on this machine's port, or another. */

import { FermataError } from "../errors.ts";
import type { CommandContext } from "./command.ts";
import type { OptionTable } from "./option-table.ts";
import { fromEnvironment, mergeLayers } from "./option-values.ts";
import { serveOptions } from "./options.ts";
import type { ParsedArguments } from "./parse-arguments.ts";

/** @param group of the help */
export function serverOptions(group: string) {
  return {
    url: {
      group,
      kind: "string",
      value: "URL",
      help: "Server to ask. Default: the one on this machine's --port.",
    },
    port: { ...serveOptions.port, group },
    apiKey: { ...serveOptions.apiKey, group, help: "Key that the server asks for." },
  } as const satisfies OptionTable;
}

/** @throws FermataError endpoint_failed */
export async function askServer(
  path: string,
  { values }: ParsedArguments,
  { env, cwd }: Pick<CommandContext, "env" | "cwd">,
): Promise<unknown> {
  const table = serverOptions("Server");
  const given = new Map([...values].filter(([key]) => key in table));
  const options = mergeLayers(table, [given, fromEnvironment(table, env, cwd)]);
  const url = options.url ?? `http://127.0.0.1:${options.port}`;
  const [key] = options.apiKey;
  const headers: Record<string, string> =
    key === undefined ? {} : { authorization: `Bearer ${key}` };
  let reply: Response;
  try {
    reply = await fetch(new URL(path, url), { headers });
  } catch (cause) {
    const message = `No server answers at ${url}. Start one with "fermata serve", or name it with --url.`;
    throw new FermataError("endpoint_failed", message, { cause });
  }
  if (reply.ok) return await reply.json();
  const { error } = (await reply.json().catch(() => ({}))) as { error?: { message?: string } };
  const message = `${url} answers with ${reply.status}: ${error?.message ?? "no Fermata server"}`;
  throw new FermataError("endpoint_failed", message);
}
