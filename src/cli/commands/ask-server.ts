/** Asks a server that runs: the one on this machine's port, or another. */

import { FermataError } from "../../errors.ts";
import type { CommandContext, ParsedArguments } from "./command.ts";
import { configLayers, expandKey } from "../options/config.ts";
import { inGroup } from "../options/option-table.ts";
import { mergeLayers, ownOptions } from "../options/option-values.ts";
import { serveOptions } from "../options/serve-options.ts";
import { localUrl } from "../port.ts";

/** @param group of the help */
export function serverOptions(group: string) {
  return inGroup(group, {
    url: {
      kind: "string",
      value: "URL",
      help: "Server to ask. Default: the one on this machine's --port.",
    },
    port: { ...serveOptions.port, help: "Port of the server on this machine." },
    apiKey: { ...serveOptions.apiKey, help: "Key that the server asks for." },
  });
}

/** With the port and the key of fermata.json, as the server has them. @throws FermataError endpoint_failed | invalid_option */
export async function askServer(
  path: string,
  { values }: ParsedArguments,
  { env, cwd }: Pick<CommandContext, "env" | "cwd">,
): Promise<unknown> {
  const { url: named } = ownOptions(serverOptions("Server"), values, { env, cwd });
  const layers = configLayers(values, env, cwd).map((layer) => layer.values);
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
