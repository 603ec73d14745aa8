/**
 * Fermata as an MCP server over Streamable HTTP. Nothing is kept between requests but the calls that run, so a client
 * may go on after the server was started again.
 */

import { randomUUID } from "node:crypto";
import { Server } from "@modelcontextprotocol/sdk/server/index.js";
import { WebStandardStreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/webStandardStreamableHttp.js";
import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js";
import {
  CallToolRequestSchema,
  CancelledNotificationSchema,
  ErrorCode,
  InitializeRequestSchema,
  isJSONRPCRequest,
  ListToolsRequestSchema,
  type ProgressToken,
} from "@modelcontextprotocol/sdk/types.js";
import { isJsonObject } from "../../json.ts";
import { protocolError } from "../protocol-error.ts";

export interface PublishedTool {
  name: string;
  description: string;
  inputSchema: { type: "object"; [key: string]: unknown };
}

/** What the MCP server offers to one client. */
export interface PublishedTools {
  list(): PublishedTool[];
  /** Never rejects while `signal` is not aborted: failures are results. */
  call(
    name: string,
    args: unknown,
    options: { signal: AbortSignal; report(message: string): void },
  ): Promise<{ text: string; isError: boolean }>;
}

interface McpPost {
  url: string;
  headers: Headers;
  /** Parsed JSON. */
  body: unknown;
  /** Requests of one owner cannot cancel another's. */
  owner: string;
  /** Aborted when the client is gone. */
  signal: AbortSignal;
}

/** A client that waits hears at least this often that the call runs. */
const heartbeatMs = 5000;
/** Of reports that come faster, the last is sent, unless the call ends first: its answer then says more. */
const reportPauseMs = 200;
const sessionHeader = "mcp-session-id";

export class McpEndpoint {
  readonly #version: string;
  /** By owner, session and request id. */
  readonly #running = new Map<string, () => void>();

  constructor(version: string) {
    this.#version = version;
  }

  /** The response's body ends with the last answer, or when the client cancels. */
  async answer(post: McpPost, tools: PublishedTools): Promise<Response> {
    const { url, headers, body, signal } = post;
    // The SDK's optional type says that each request has a transport of its own.
    const transport = new WebStandardStreamableHTTPServerTransport({});
    const server = this.#server(post, tools);
    await server.connect(transport as Transport);
    refuseBadParams(transport as Transport);
    signal.addEventListener("abort", () => void server.close(), { once: true });
    const request = new Request(url, { method: "POST", headers });
    const response = await transport.handleRequest(request, { parsedBody: body });
    if (response.ok && isInitialize(body)) response.headers.set(sessionHeader, randomUUID());
    return response;
  }

  #server(post: McpPost, tools: PublishedTools): Server {
    const session = post.headers.get(sessionHeader);
    const keyOf = (id: unknown): string => JSON.stringify([post.owner, session, id]);
    const server = new Server(
      { name: "fermata", version: this.#version },
      { capabilities: { tools: {} } },
    );
    server.setRequestHandler(ListToolsRequestSchema, async () => ({ tools: tools.list() }));
    // The call came with another request. Without a session nobody knows whose it is.
    server.setNotificationHandler(CancelledNotificationSchema, async ({ params }) => {
      if (session !== null) this.#running.get(keyOf(params.requestId))?.();
    });
    server.setRequestHandler(CallToolRequestSchema, async ({ params }, extra) => {
      const { name, arguments: args, _meta: meta } = params;
      if (!tools.list().some((tool) => tool.name === name))
        throw protocolError(ErrorCode.InvalidParams, `Unknown tool: ${name.slice(0, 100)}`);
      const progress = new ProgressReports(meta?.progressToken, (message) =>
        extra.sendNotification({ method: "notifications/progress", params: message }),
      );
      const key = keyOf(extra.requestId);
      this.#running.set(key, () => void server.close());
      try {
        const { signal } = extra;
        const { report } = progress;
        const { text, isError } = await tools.call(name, args ?? {}, { signal, report });
        return { content: [{ type: "text", text }], isError };
      } finally {
        progress.end();
        this.#running.delete(key);
      }
    });
    return server;
  }
}

const requestSchemas = new Map(
  [InitializeRequestSchema, ListToolsRequestSchema, CallToolRequestSchema].map((schema) => [
    schema.shape.method.value as string,
    schema,
  ]),
);

/** The client is told what is wrong with its parameters. To the SDK that is an error of the server, with zod's list as text. */
function refuseBadParams(transport: Transport): void {
  const pass = transport.onmessage;
  transport.onmessage = (message, extra) => {
    const request = isJSONRPCRequest(message) ? message : null;
    const fault = requestSchemas.get(request?.method ?? "")?.safeParse(request).error?.issues[0];
    if (request === null || fault === undefined) return pass?.(message, extra);
    const error = {
      code: ErrorCode.InvalidParams,
      message: `${fault.path.join(".")}: ${fault.message}`,
    };
    // Nobody waits for it any more where the client is gone, or has used the id twice.
    const sent = transport.send({ jsonrpc: "2.0", id: request.id, error });
    sent.catch((reason: Error) => transport.onerror?.(reason));
  };
}

type ProgressParams = { progressToken: ProgressToken; progress: number; message: string };

/** Nothing is sent to a client that gave no token. */
class ProgressReports {
  readonly #token: ProgressToken | undefined;
  readonly #send: (params: ProgressParams) => Promise<void>;
  readonly #timer: NodeJS.Timeout;
  #message = "waiting";
  /** Set for a while after a report was sent. */
  #pause: NodeJS.Timeout | undefined;
  #cameInPause = false;
  #count = 0;

  constructor(token: ProgressToken | undefined, send: (params: ProgressParams) => Promise<void>) {
    this.#token = token;
    this.#send = send;
    this.#timer = setInterval(() => this.#tell(), heartbeatMs);
  }

  readonly report = (message: string): void => {
    this.#message = message;
    if (this.#pause === undefined) this.#tell();
    else this.#cameInPause = true;
  };

  end(): void {
    clearInterval(this.#timer);
    clearTimeout(this.#pause);
  }

  #tell(): void {
    if (this.#token === undefined) return;
    clearTimeout(this.#pause);
    this.#cameInPause = false;
    this.#pause = setTimeout(() => {
      this.#pause = undefined;
      if (this.#cameInPause) this.#tell();
    }, reportPauseMs);
    const params = {
      progressToken: this.#token,
      progress: ++this.#count,
      message: this.#message,
    };
    this.#send(params).catch(() => {});
  }
}

function isInitialize(body: unknown): boolean {
  return isJsonObject(body) && body["method"] === "initialize";
}
