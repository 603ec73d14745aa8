/** Asks a server that runs: the one on this machine's port, or another. */

import { FermataError } from "../errors.ts";
import type { CommandContext, ParsedArguments } from "./command.ts";
import { configLayers, expandKey } from "./config.ts";
import { inGroup } from "./option-table.ts";
import { fromEnvironment, mergeLayers } from "./option-values.ts";
import { type ServeConfig, serveOptions } from "./options.ts";

/** @param group of the help */
export function serverOptions(group: string) {
  return inGroup(group, {
    url: {
      kind: "string",
      value: "URL",
      help: "Server to ask. Default: the one on this machine's --port.",
    },
    port: serveOptions.port,
    apiKey: { ...serveOptions.apiKey, help: "Key that the server asks for." },
  });
}

/** Where a server with these options is reached from this machine. */
export function localUrl({ host, port }: Pick<ServeConfig, "host" | "port">): string {
  const reached = ["0.0.0.0", "::"].includes(host) ? "127.0.0.1" : host;
  return `http://${reached.includes(":") ? `[${reached}]` : reached}:${port}`;
}

/** With the port and the key of fermata.json, as the server has them. @throws FermataError endpoint_failed | invalid_option */
export async function askServer(
  path: string,
  { values }: ParsedArguments,
  { env, cwd }: Pick<CommandContext, "env" | "cwd">,
): Promise<unknown> {
  const table = serverOptions("Server");
  const given = new Map([...values].filter(([key]) => key in table));
  const named = mergeLayers(table, [given, fromEnvironment(table, env, cwd)]).url;
  const flags = new Map([...given].filter(([name]) => name in serveOptions));
  const layers = configLayers(flags, env, cwd).map((layer) => layer.values);
  const options = mergeLayers(serveOptions, layers);
  const url = named ?? localUrl(options);
  const [key] = options.apiKey.flatMap((one) => expandKey(one, cwd));
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
