/** The server to talk to: the one that is named, the one on this machine, or one in this process. */

import { randomUUID } from "node:crypto";
import type { CommandContext } from "../command.ts";
import { configOf } from "../config.ts";
import { serveOptions, type ServeConfig } from "../options.ts";
import type { ParsedArguments } from "../parse-arguments.ts";
import { withPulledModel } from "../pull/run-pull.ts";
import { ChatApi } from "./chat-api.ts";

export interface Connection {
  api: ChatApi;
  /** Ends the engine, if it runs in this process. */
  close(): Promise<void>;
}

/** Options that a running server has had its own say about. */
const connectionKeys = new Set(["host", "port", "apiKey", "modelsDir", "logLevel"]);
const probeMs = 1000;

/** @throws FermataError | StreamError */
export async function connect(
  url: string | undefined,
  values: ParsedArguments["values"],
  context: CommandContext,
  note: (text: string) => void,
): Promise<Connection> {
  const flags = new Map([...values].filter(([key]) => key in serveOptions));
  const config = configOf(flags, context.env, context.cwd);
  const key = config.apiKey[0];
  const nothingToClose = async (): Promise<void> => {};
  if (url !== undefined) return { api: new ChatApi(url, key), close: nothingToClose };

  const host = ["0.0.0.0", "::"].includes(config.host) ? "127.0.0.1" : config.host;
  const local = `http://${host.includes(":") ? `[${host}]` : host}:${config.port}`;
  const saysWhatIsServed = [...flags.keys()].some((name) => !connectionKeys.has(name));
  if (!saysWhatIsServed && (await isServed(local)))
    return { api: new ChatApi(local, key), close: nothingToClose };

  note(`${saysWhatIsServed ? "" : `No server at ${local}. `}Starting the engine in this process.`);
  const quiet = values.has("logLevel") ? config : { ...config, logLevel: "error" as const };
  return startHere(await withPulledModel(quiet, context));
}

/** On a port of its own, with a key that nobody else knows. */
async function startHere(config: ServeConfig): Promise<Connection> {
  const { startService } = await import("../serve.ts");
  const { listen } = await import("../port.ts");
  const key = randomUUID();
  const service = await startService(
    { ...config, apiKey: [key], drainSeconds: 1 },
    new AbortController().signal,
  );
  const url = await listen(service.app, 0, "127.0.0.1");
  return { api: new ChatApi(url, key), close: () => service.close() };
}

async function isServed(url: string): Promise<boolean> {
  try {
    const response = await fetch(`${url}/health`, { signal: AbortSignal.timeout(probeMs) });
    const health = (await response.json()) as { status?: string; model?: string };
    return response.ok && typeof health.model === "string";
  } catch {
    return false;
  }
}
