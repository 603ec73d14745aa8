/** Who may call: nobody beyond this machine without a key, unless the user says so. */

import { randomBytes } from "node:crypto";
import { isIPv4 } from "node:net";
import { invalidOption } from "../errors.ts";
import type { ServeConfig } from "./options/serve-options.ts";

/**
 * `config` with the keys that the server asks for. `--no-auth` opens a model, never tools: whoever
 * reaches the port would run them, so they get a key, which the banner shows once.
 * @throws FermataError invalid_option: other machines would need no key
 */
export function withAccess(config: ServeConfig): ServeConfig {
  if (needsKey(config) || isLoopback(config.host)) return config;
  if (config.auth) {
    const message = `--host ${config.host} is reached by other machines and there is no key.`;
    const remedy =
      "Give --api-key @FILE or --api-keys-file FILE, or --no-auth to let everybody call.";
    throw invalidOption(`${message} ${remedy}`, "api-key");
  }
  if (!runsTools(config)) return config;
  const generatedKey = randomBytes(24).toString("base64url");
  return { ...config, apiKey: [generatedKey], generatedKey };
}

export function needsKey({ apiKey, apiKeysFile }: ServeConfig): boolean {
  return apiKey.length > 0 || apiKeysFile !== undefined;
}

/** An address that other machines cannot reach. Of a name only `localhost` is known to be one. */
function isLoopback(host: string): boolean {
  const address = host.toLowerCase().replace(/^::ffff:/, "");
  if (isIPv4(address)) return address.startsWith("127.");
  return address === "::1" || address === "localhost";
}

function runsTools({ mcpConfig, mcpCommand, agents, allowRequestMcp }: ServeConfig): boolean {
  return [mcpConfig, mcpCommand, agents].some((named) => named !== undefined) || allowRequestMcp;
}
