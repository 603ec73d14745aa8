/** The server to talk to (named, on this machine, or in this process) and its conversation API. */

import { randomUUID } from "node:crypto";
import type { CommandContext, ParsedArguments } from "../commands/command.ts";
import { configOf } from "../options/config.ts";
import { type ServeConfig, serveOptions } from "../options/serve-options.ts";
import { localUrl } from "../port.ts";
import { withPulledModel } from "../pull/pull.ts";
import {
  type Conversation,
  type ConversationList,
  readConversation,
  type ReadEvent,
  type RunStarted,
  StreamError,
} from "../../client/index.ts";

export interface Connection {
  api: ChatApi;
  /** Gives up what is not answered yet, and ends the engine, if it runs in this process. */
  close(): Promise<void>;
}

/** Options that a running server has had its own say about. */
const connectionKeys = new Set(["host", "port", "apiKey", "logLevel"]);
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
  const connectionTo = (server: string): Connection => {
    const api = new ChatApi(server, key);
    return { api, close: async () => api.leave() };
  };
  if (url !== undefined) return connectionTo(url);

  const local = localUrl(config);
  const saysWhatIsServed = [...flags.keys()].some((name) => !connectionKeys.has(name));
  if (!saysWhatIsServed && (await isServed(local))) return connectionTo(local);

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
    { ...config, apiKey: [key], processTimeout: { ...config.processTimeout, drain: 1, notice: 0 } },
    new AbortController().signal,
  );
  const url = await listen(service.app, 0, "127.0.0.1");
  const api = new ChatApi(url, key);
  return { api, close: () => (api.leave(), service.close()) };
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

interface ToolServers {
  servers: {
    name: string;
    state: string;
    error: string | null;
    tools: { name: string; description: string | null; approval: string }[];
  }[];
  agents: { name: string; description: string }[];
  models: { id: string }[];
}

export class ChatApi {
  readonly url: string;
  readonly headers: Record<string, string>;
  readonly #leaving = new AbortController();

  constructor(url: string, apiKey: string | undefined) {
    this.url = url.replace(/\/+$/, "").replace(/\/v1$/, "");
    this.headers = apiKey === undefined ? {} : { authorization: `Bearer ${apiKey}` };
  }

  /** Requests that wait for their answers end; what they asked for goes on at the server. */
  leave(): void {
    this.#leaving.abort();
  }

  list(limit: number): Promise<ConversationList> {
    return this.#call("GET", `/api/conversations?limit=${limit}`);
  }

  conversation(id: string): Promise<Conversation> {
    return this.#call("GET", `/api/conversations/${encodeURIComponent(id)}`);
  }

  create(body: object): Promise<Conversation> {
    return this.#call("POST", "/api/conversations", body);
  }

  change(id: string, body: object): Promise<Conversation> {
    return this.#call("PATCH", `/api/conversations/${encodeURIComponent(id)}`, body);
  }

  startRun(id: string, body: object): Promise<RunStarted> {
    return this.#call("POST", `/api/conversations/${encodeURIComponent(id)}/runs`, body);
  }

  async cancel(id: string, runId: string): Promise<void> {
    await this.#call("POST", `/api/conversations/${id}/runs/${runId}/cancel`);
  }

  async decide(callId: string, answer: object): Promise<void> {
    await this.#call("POST", `/api/approvals/${encodeURIComponent(callId)}`, answer);
  }

  tools(): Promise<ToolServers> {
    return this.#call("GET", "/api/tools");
  }

  /** From the first event on, with details, until the run has ended. @throws StreamError */
  events(id: string, runId: string, signal: AbortSignal): AsyncGenerator<ReadEvent, void, void> {
    const path = `/api/conversations/${encodeURIComponent(id)}/stream`;
    const query = `run_id=${encodeURIComponent(runId)}&details=1`;
    return readConversation(`${this.url}${path}?${query}`, { headers: this.headers, signal });
  }

  /** @throws StreamError, with the server's own words */
  async #call<T>(method: string, path: string, body?: object): Promise<T> {
    let response: Response;
    let text: string;
    try {
      response = await fetch(`${this.url}${path}`, {
        method,
        headers: {
          ...this.headers,
          ...(body === undefined ? {} : { "content-type": "application/json" }),
        },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
        signal: this.#leaving.signal,
      });
      text = await response.text();
    } catch {
      throw new StreamError(`No server answers at ${this.url}.`, 0, "unreachable");
    }
    let json: unknown;
    try {
      json = text === "" ? {} : JSON.parse(text);
    } catch {
      throw new StreamError(`${this.url} is not a Fermata server.`, response.status, "unknown");
    }
    if (response.ok) return json as T;
    const { error } = json as { error?: { message?: string; code?: string } };
    const message = error?.message ?? `The server answered with status ${response.status}.`;
    const hint = response.status === 401 ? " Give it with --api-key." : "";
    throw new StreamError(`${message}${hint}`, response.status, error?.code ?? "unknown");
  }
}
