/** The conversation API of a server. */

import {
  type Conversation,
  type ConversationList,
  type ReadEvent,
  readConversation,
  type RunStarted,
  StreamError,
} from "../../client/index.ts";

export interface ToolServers {
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
  readonly #headers: Record<string, string>;

  constructor(url: string, apiKey: string | undefined) {
    this.url = url.replace(/\/+$/, "").replace(/\/v1$/, "");
    this.#headers = apiKey === undefined ? {} : { authorization: `Bearer ${apiKey}` };
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

  async decide(callId: string, decision: "approve" | "deny", reason?: string): Promise<void> {
    const path = `/api/approvals/${encodeURIComponent(callId)}`;
    await this.#call("POST", path, { decision, ...(reason !== undefined && { reason }) });
  }

  tools(): Promise<ToolServers> {
    return this.#call("GET", "/api/tools");
  }

  /** From the first event on, with details, until the run has ended. @throws StreamError */
  events(id: string, runId: string, signal: AbortSignal): AsyncGenerator<ReadEvent, void, void> {
    const path = `/api/conversations/${encodeURIComponent(id)}/stream`;
    const query = `run_id=${encodeURIComponent(runId)}&details=1`;
    return readConversation(`${this.url}${path}?${query}`, { headers: this.#headers, signal });
  }

  /** @throws StreamError, with the server's own words */
  async #call<T>(method: string, path: string, body?: object): Promise<T> {
    let response: Response;
    try {
      response = await fetch(`${this.url}${path}`, {
        method,
        headers: {
          ...this.#headers,
          ...(body === undefined ? {} : { "content-type": "application/json" }),
        },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      });
    } catch {
      throw new StreamError(`No server answers at ${this.url}.`, 0, "unreachable");
    }
    const text = await response.text();
    let json: unknown;
    try {
      json = text === "" ? {} : JSON.parse(text);
    } catch {
      throw new StreamError(`${this.url} is no Fermata server.`, response.status, "unknown");
    }
    if (response.ok) return json as T;
    const { error } = json as { error?: { message?: string; code?: string } };
    const message = error?.message ?? `The server answered with status ${response.status}.`;
    const hint = response.status === 401 ? " Give it with --api-key." : "";
    throw new StreamError(`${message}${hint}`, response.status, error?.code ?? "unknown");
  }
}
