/** One session with an MCP server, from the handshake until either side ends it. */

import { setTimeout as sleep } from "node:timers/promises";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { SseError } from "@modelcontextprotocol/sdk/client/sse.js";
import {
  StreamableHTTPClientTransport,
  StreamableHTTPError,
} from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import type { FetchLike, Transport } from "@modelcontextprotocol/sdk/shared/transport.js";
import {
  CallToolResultSchema,
  ErrorCode,
  McpError,
  type Progress,
  ResultSchema,
  ToolListChangedNotificationSchema,
} from "@modelcontextprotocol/sdk/types.js";
import type { McpServerConfig } from "./settings.ts";
import { FermataError } from "../errors.ts";
import { longestDelayMs } from "../waits.ts";
import type { McpCredentials } from "./login/credentials.ts";
import { type AskingCall, McpServerRequests } from "./server-requests.ts";
import { StdioTransport } from "./transport/stdio-transport.ts";
import { describeError, faultOf, plainText } from "./text.ts";
import {
  maxDescriptionLength,
  type McpToolInfo,
  type McpToolList,
  listTools,
} from "./tool-list.ts";
import {
  createTransport,
  speaksOlderSse,
  type TransportKind,
  transportKinds,
} from "./transport/create-transport.ts";

interface McpSessionOptions {
  version: string;
  /** Name of the model that answers the server's questions. */
  model: string;
  /** For the handshake and each listing. */
  connectTimeoutMs: number;
  maxMessageBytes: number;
  fetch?: FetchLike | undefined;
  credentials?: McpCredentials | undefined;
  /** Cancels the handshake. */
  signal: AbortSignal;
  onStandardError(text: string): void;
  /** What is wrong with a message, as often as it happens. */
  onComplaint(text: string): void;
  onToolsChanged(): void;
  /** A stream of events that broke and is taken up again. */
  onBreak(reason: string): void;
  /** For the log. */
  onNote(text: string): void;
  /** Once, unless it was closed here. */
  onLost(reason: string): void;
}

export interface McpCallOptions extends Pick<AskingCall, "owner" | "ask" | "sample"> {
  /** Aborted: the server is told that the call is cancelled. */
  signal: AbortSignal;
  /** Without an answer or progress. */
  timeoutMs: number;
  onProgress(progress: Progress): void;
}

/** How long the server may take to end the session. */
const farewellMs = 1000;

export class McpSession {
  readonly kind: TransportKind;
  readonly #client: Client;
  readonly #transport: Transport;
  readonly #options: McpSessionOptions;
  readonly #requests: McpServerRequests;
  #state: "opening" | "open" | "over" = "opening";

  /** @throws the failure of the transport that the server speaks */
  static async open(config: McpServerConfig, options: McpSessionOptions): Promise<McpSession> {
    const kinds = transportKinds(config);
    let first: unknown;
    for (;;) {
      const kind = kinds.shift()!;
      const session = new McpSession(config, kind, options);
      try {
        await session.#handshake();
        session.#state = "open";
        return session;
      } catch (error) {
        first ??= error;
        // It does not speak the older transport either: its first refusal is the reason. A 401 asks for a login.
        const isRefused = error instanceof SseError && error.code !== undefined;
        if (isRefused && error.code !== 401) throw first;
        if (kinds.length === 0 || !speaksOlderSse(error)) throw error;
      }
    }
  }

  private constructor(config: McpServerConfig, kind: TransportKind, options: McpSessionOptions) {
    this.kind = kind;
    this.#transport = createTransport(config, kind, options);
    this.#options = options;
    const { sampling, elicitation = true } = config;
    const { version, model, onNote: note } = options;
    this.#requests = new McpServerRequests({ sampling, elicitation, model, note });
    const { capabilities } = this.#requests;
    this.#client = new Client({ name: "fermata", version }, { capabilities });
    this.#requests.install(this.#client);
    this.#client.onclose = () => this.#lose(this.#ending);
    this.#client.onerror = (error) => this.#onError(error);
    this.#client.setNotificationHandler(ToolListChangedNotificationSchema, () =>
      options.onToolsChanged(),
    );
  }

  /** What the server says about its tools. */
  get instructions(): string {
    return plainText(this.#client.getInstructions()?.trim() ?? "", maxDescriptionLength);
  }

  /** @param signal not one that lives long: the SDK leaves its listeners on it */
  listTools(signal?: AbortSignal): Promise<McpToolList> {
    const options = { timeout: this.#options.connectTimeoutMs, ...(signal && { signal }) };
    return this.#guard(listTools(this.#client, options), signal);
  }

  /** Whether it answers at all. */
  async ping(timeoutMs: number): Promise<boolean> {
    try {
      await this.#client.ping({ timeout: timeoutMs });
      return true;
    } catch (error) {
      // A server that does not know the question has answered it.
      return error instanceof McpError && error.code === ErrorCode.MethodNotFound;
    }
  }

  /** @throws whatever the protocol or the transport reports; results with `isError` return */
  async callTool(
    tool: Pick<McpToolInfo, "name" | "isTask">,
    args: Record<string, unknown>,
    { signal, timeoutMs, onProgress, ...asking }: McpCallOptions,
  ): Promise<Record<string, unknown>> {
    // The SDK leaves its listener on the signal, which may live as long as the whole request.
    const controller = new AbortController();
    const abort = (): void => controller.abort(signal.reason);
    signal.addEventListener("abort", abort, { once: true });
    if (signal.aborted) abort();
    const params = { name: tool.name, arguments: args };
    // Not the SDK's time-out: while the server asks, the call is not silent.
    const silence = setTimeout(() => controller.abort(), timeoutMs);
    const alive = (): void => void silence.refresh();
    const options = {
      signal: controller.signal,
      timeout: longestDelayMs,
      onprogress: (progress: Progress) => {
        alive();
        onProgress(progress);
      },
    };
    const call = { ...asking, signal: controller.signal, alive };
    const end = this.#requests.begin(call);
    const send = (): Promise<Record<string, unknown>> =>
      tool.isTask
        ? this.#runTask(params, options)
        : // Neither its shape nor its structured content is checked: what the model reads is text.
          this.#guard(
            this.#client.request({ method: "tools/call", params }, ResultSchema, options),
            signal,
          );
    try {
      return await send().catch(async (error: unknown) => {
        if (!(await this.#requests.hasOpenedPages(call, error))) throw error;
        return await send();
      });
    } finally {
      clearTimeout(silence);
      end();
      signal.removeEventListener("abort", abort);
    }
  }

  /** Idempotent. */
  async close(): Promise<void> {
    this.#state = "over";
    if (this.#transport instanceof StreamableHTTPClientTransport) {
      const farewell = this.#transport.terminateSession().catch(() => {});
      await Promise.race([farewell, sleep(farewellMs, null, { ref: false })]);
    }
    await this.#transport.close().catch(() => {});
  }

  get #ending(): string {
    const own = this.#transport instanceof StdioTransport ? this.#transport.ending : "";
    return own === "" ? "it closed the connection" : own;
  }

  async #handshake(): Promise<void> {
    const { signal, connectTimeoutMs } = this.#options;
    let giveUp = (_error: unknown): void => {};
    const gaveUp = new Promise<never>((_resolve, reject) => (giveUp = reject));
    const late = new McpError(ErrorCode.RequestTimeout, "Request timed out");
    const timer = setTimeout(() => giveUp(late), connectTimeoutMs);
    const onAbort = (): void =>
      giveUp(new FermataError("mcp_start_failed", "it is no longer needed"));
    signal.addEventListener("abort", onAbort, { once: true });
    if (signal.aborted) onAbort();
    try {
      const connected = this.#client.connect(this.#transport, { timeout: connectTimeoutMs });
      await Promise.race([connected, gaveUp]);
    } catch (error) {
      const ending = this.#transport instanceof StdioTransport ? this.#transport.ending : "";
      await this.close();
      if (ending === "") throw error;
      throw new FermataError("mcp_start_failed", ending, { cause: error });
    } finally {
      clearTimeout(timer);
      signal.removeEventListener("abort", onAbort);
      gaveUp.catch(() => {});
    }
  }

  /** Polls a task until it ends. Its status messages are reported as progress. */
  async #runTask(
    params: { name: string; arguments: Record<string, unknown> },
    options: { signal: AbortSignal; timeout: number; onprogress: (progress: Progress) => void },
  ): Promise<Record<string, unknown>> {
    const { tasks } = this.#client.experimental;
    let taskId: string | undefined;
    const cancel = (): void => {
      if (taskId !== undefined) tasks.cancelTask(taskId).catch(() => {});
    };
    options.signal.addEventListener("abort", cancel, { once: true });
    const stream = tasks.callToolStream(params, CallToolResultSchema, { ...options, task: {} });
    let step = 0;
    for await (const message of stream) {
      if (message.type === "result") return message.result;
      if (message.type === "error") throw message.error;
      taskId = message.task.taskId;
      const text = message.task.statusMessage;
      options.onprogress({ progress: ++step, ...(text === undefined ? {} : { message: text }) });
    }
    throw new FermataError("internal_error", "the task ended without a result");
  }

  #onError(error: Error): void {
    // What fails while it opens over HTTP is the reason that it does not.
    if (this.#state === "over" || (this.#state === "opening" && this.kind !== "stdio")) return;
    // Many servers and proxies end a stream that is idle.
    if (error.message.startsWith("SSE stream disconnected"))
      return this.#options.onBreak(describeError(error));
    this.#options.onComplaint(faultOf(error));
    // Its stream of events broke: answers to what was asked over it will not come.
    if (error instanceof SseError || error.message.startsWith("Maximum reconnection"))
      this.#lose(faultOf(error));
  }

  async #guard<Value>(request: Promise<Value>, signal?: AbortSignal): Promise<Value> {
    try {
      return await request;
    } catch (error) {
      if (this.kind !== "stdio" && signal?.aborted !== true) {
        if (isUnreachable(error)) this.#lose(faultOf(error));
        else if (this.#mayBeRefused(error)) void this.#checkSession();
      }
      throw error;
    }
  }

  /**
   * This call alone, or the session. The protocol wants 404 of a server that does not know it: many say 400, as they do to
   * a bad call. 401 and 403 may be about what the call asks for.
   */
  #mayBeRefused(error: unknown): boolean {
    if (!(this.#transport instanceof StreamableHTTPClientTransport)) return false;
    if (!(error instanceof StreamableHTTPError)) return false;
    if (error.code === 400) return this.#transport.sessionId !== undefined;
    return error.code === 401 || error.code === 403;
  }

  /** Nothing is wrong with a ping, unless it is the session. */
  async #checkSession(): Promise<void> {
    try {
      await this.#client.ping({ timeout: this.#options.connectTimeoutMs });
    } catch (error) {
      if (error instanceof StreamableHTTPError) this.#lose(faultOf(error));
    }
  }

  #lose(reason: string): void {
    if (this.#state !== "open") return;
    this.#state = "over";
    this.#transport.close().catch(() => {});
    this.#options.onLost(reason);
  }
}

/** No answer of the server: it is gone, or has forgotten the session. */
function isUnreachable(error: unknown): boolean {
  if (error instanceof StreamableHTTPError) return error.code === 404;
  return error instanceof TypeError;
}
