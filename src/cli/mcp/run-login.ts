/** `fermata mcp login NAME` and `fermata mcp logout NAME`. */

import { spawn } from "node:child_process";
import { FermataError, invalidOption } from "../../errors.ts";
import { McpCredentials } from "../../mcp/login/credentials.ts";
import { login } from "../../mcp/login/login.ts";
import type { McpAddress, McpServerConfig } from "../../mcp/settings.ts";
import { mayLogIn } from "../../mcp/transport/create-transport.ts";
import { didYouMean } from "../../near-names.ts";
import type { CommandContext, ParsedArguments } from "../commands/command.ts";
import { configOf } from "../options/config.ts";
import { credentialsPath, packageVersion } from "../folders.ts";
import { mcpServers } from "../load-services.ts";

const patienceMs = 5 * 60_000;

/** Resolves to the exit code. @throws FermataError */
export async function runLogin(
  { values, operands }: ParsedArguments,
  { env, cwd, out, err }: CommandContext,
): Promise<number> {
  const [action = "", name] = operands;
  const help = "fermata mcp login NAME, or fermata mcp logout NAME";
  if (action !== "login" && action !== "logout")
    throw invalid(`Unknown action ${action}: ${help}.`);
  if (name === undefined) throw invalid(`A server's name is missing: ${help}.`);
  const server = remoteServer(mcpServers(configOf(values, env, cwd)), name);
  const credentials = new McpCredentials(credentialsPath(env));
  if (action === "logout") {
    if (!credentials.set(server.url, undefined)) throw invalid(`Nobody is logged in at ${name}.`);
    out(`Logged out of ${name}.\n`);
    return 0;
  }
  const open = (url: string): void => {
    err(`Log in at ${name} (${new URL(server.url).host}) with a browser of this machine:\n\n`);
    out(`${url}\n`);
    err("\nWaiting. Ctrl-C gives up.\n");
    if (process.stderr.isTTY) openBrowser(url);
  };
  const late = new FermataError(
    "mcp_login_failed",
    "The login failed: nobody logged in within five minutes. Run the command again.",
  );
  const stop = new AbortController();
  const timer = setTimeout(() => stop.abort(late), patienceMs);
  try {
    await login(server, credentials, { version: packageVersion(), open, signal: stop.signal });
  } finally {
    clearTimeout(timer);
  }
  err(`Logged in at ${name}. A running server uses it within a minute.\n`);
  return 0;
}

/** @throws FermataError invalid_option */
function remoteServer(
  servers: readonly McpServerConfig[],
  name: string,
): McpServerConfig & McpAddress {
  const server = servers.find(({ id }) => id === name);
  if (server === undefined) {
    const names = servers.map(({ id }) => id);
    const from = "Give the file that has it with --mcp-config.";
    throw invalid(`No MCP server is called ${name}.${didYouMean(name, names)} ${from}`);
  }
  if (!("url" in server)) throw invalid(`${name} is started here, and needs no login.`);
  if (!mayLogIn(server.headers))
    throw invalid(`${name} has an Authorization header in its configuration. Remove it to log in.`);
  return server;
}

/** A machine without one shows the address all the same. */
function openBrowser(url: string): void {
  const commands: Partial<Record<NodeJS.Platform, [string, ...string[]]>> = {
    darwin: ["open"],
    win32: ["rundll32", "url.dll,FileProtocolHandler"],
  };
  const [program, ...args] = commands[process.platform] ?? ["xdg-open"];
  const child = spawn(program, [...args, url], { stdio: "ignore", detached: true });
  child.on("error", () => {});
  child.unref();
}

function invalid(message: string): FermataError {
  return invalidOption(message, "NAME");
}
