/** Passes the messages of an MCP client on standard input to a Fermata server's `/mcp`, and the answers back. */

import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";
import type { JSONRPCMessage } from "@modelcontextprotocol/sdk/types.js";
import { SseParser } from "../../client/index.ts";
import { FermataError } from "../../errors.ts";
import { isJsonObject, parseJson } from "../../json.ts";

interface BridgeOptions {
  /** Of the server, without a path. */
  url: string;
  headers: Record<string, string>;
  input: NodeJS.ReadStream;
  output: NodeJS.WriteStream;
  /** For messages that nobody waits for an answer to. */
  note(text: string): void;
}

/** JSON-RPC's range for errors of a server's own. */
const serverError = -32000;
const sessionHeader = "mcp-session-id";

export class McpStdioBridge {
  readonly #options: BridgeOptions;
  readonly #transport: StdioServerTransport;
  readonly #leaving = new AbortController();
  /** Requests that the client does not wait for any more. */
  readonly #cancelled = new Set<unknown>();
  #session: string | null = null;
  /** Messages leave in their order: a cancellation must not overtake its call. */
  #sent: Promise<void> = Promise.resolve();

  constructor(options: BridgeOptions) {
    this.#options = options;
    this.#transport = new StdioServerTransport(options.input, options.output);
  }

  /** Resolves when the client has closed its end. Calls that run are cancelled then. */
  async run(): Promise<void> {
    const { input, output, note } = this.#options;
    const ended = new Promise<void>((resolve) => {
      for (const event of ["end", "close"]) input.once(event, resolve);
      output.once("error", () => resolve());
      this.#transport.onclose = resolve;
    });
    this.#transport.onerror = (error) => note(`A message was not read: ${error.message}`);
    this.#transport.onmessage = (message) => {
      this.#sent = this.#sent.then(() => this.#forward(message));
    };
    await this.#transport.start();
    await ended;
    this.#leaving.abort();
    await this.#transport.close();
  }

  /** Until the server has taken the message; its answer comes later. */
  async #forward(message: JSONRPCMessage): Promise<void> {
    if ("method" in message && message.method === "notifications/cancelled")
      this.#cancelled.add(message.params?.["requestId"]);
    try {
      const response = await this.#post(message);
      this.#session = response.headers.get(sessionHeader) ?? this.#session;
      void this.#passOn(response, message).catch((error: unknown) => this.#fail(message, error));
    } catch (error) {
      await this.#fail(message, error);
    }
  }

  async #post(message: JSONRPCMessage): Promise<Response> {
    const { url, headers } = this.#options;
    let response: Response;
    try {
      response = await fetch(`${url}/mcp`, {
        method: "POST",
        headers: {
          ...headers,
          "content-type": "application/json",
          accept: "application/json, text/event-stream",
          ...(this.#session === null ? {} : { [sessionHeader]: this.#session }),
        },
        body: JSON.stringify(message),
        signal: this.#leaving.signal,
      });
    } catch (cause) {
      throw new FermataError("engine_closed", `No server answers at ${url}.`, { cause });
    }
    if (response.ok) return response;
    throw new FermataError("engine_closed", reasonOf(await response.text(), response.status));
  }

  async #passOn(response: Response, message: JSONRPCMessage): Promise<void> {
    const id = requestId(message);
    let isAnswered = id === undefined;
    const send = async (text: string): Promise<void> => {
      const value = parseJson(text);
      if (!isJsonObject(value)) return;
      isAnswered ||= value["id"] === id;
      await this.#transport.send(value as JSONRPCMessage);
    };
    const parser = new SseParser();
    const decoder = new TextDecoder();
    const isStream = response.headers.get("content-type")?.startsWith("text/event-stream") === true;
    if (!isStream) await send(await response.text());
    else
      for await (const bytes of response.body ?? [])
        for (const { data } of parser.push(decoder.decode(bytes, { stream: true })))
          await send(data);
    if (!isAnswered)
      throw new FermataError("engine_closed", "The server ended before it answered.");
  }

  async #fail(message: JSONRPCMessage, error: unknown): Promise<void> {
    const id = requestId(message);
    if (this.#leaving.signal.aborted || this.#cancelled.delete(id)) return;
    const reason = error instanceof Error ? error.message : String(error);
    if (id === undefined) return this.#options.note(reason);
    await this.#transport.send({
      jsonrpc: "2.0",
      id,
      error: { code: serverError, message: reason },
    });
  }
}

function requestId(message: JSONRPCMessage): string | number | undefined {
  return "method" in message && "id" in message ? message.id : undefined;
}

/** The words of an error, as our API or MCP has them. */
function reasonOf(text: string, status: number): string {
  const value = parseJson(text);
  const error = isJsonObject(value) ? value["error"] : undefined;
  const message = isJsonObject(error) ? error["message"] : undefined;
  if (typeof message === "string") return message;
  return status === 404
    ? "The server has no /mcp: it is not a Fermata server, or an older one."
    : `The server answered with status ${status}.`;
}
