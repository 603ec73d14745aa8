/**
 * One MCP server over all its sessions: connects, lists its tools, and reconnects when the server is lost.
 *
 *   starting --> ready <--> restarting --> failed
 *                  ^----------------------'
 */

import type { FetchLike } from "@modelcontextprotocol/sdk/shared/transport.js";
import type { McpLogger, McpServerConfig } from "./settings.ts";
import { FermataError } from "../errors.ts";
import type { ToolServerState } from "../tools/types.ts";
import { isOffered, noRules, unusedPatterns } from "./rules.ts";
import type { McpCredentials } from "./login/credentials.ts";
import { needsLogin } from "./login/stored-login.ts";
import { RestartPolicy } from "./restart.ts";
import { type McpCallOptions, McpSession } from "./session.ts";
import { describeError, plainText, startErrorLength } from "./text.ts";
import type { McpToolInfo } from "./tool-list.ts";
import { ToolPins } from "./tool-pins.ts";
import { mayLogIn, type TransportKind, transportKinds } from "./transport/create-transport.ts";

export interface McpConnectionOptions {
  log: McpLogger;
  version: string;
  /** Name of the model, for servers that ask it. */
  model?: string | undefined;
  /** For servers whose configuration does not say. Default 30 s. */
  connectTimeoutMs?: number | undefined;
  /** The first wait before a reconnect; it doubles up to `maxReconnectDelayMs`. Default 1 s, at most 30 s. */
  reconnectDelayMs?: number | undefined;
  maxReconnectDelayMs?: number | undefined;
  /** Between tries of a server that failed several times in a row. Default 60 s. */
  brokenDelayMs?: number | undefined;
  /** For the answer to a ping after a call that timed out. Default 5 s. */
  pingTimeoutMs?: number | undefined;
  fetch?: FetchLike | undefined;
  /** Of logins. Default: none is used. */
  credentials?: McpCredentials | undefined;
  onToolsChanged?: (() => void) | undefined;
}

/** Of one message: room for a result, its JSON and the media beside it. */
const maxMessageBytes = 16 * 1024 ** 2;

export const defaultConnectTimeoutMs = 30_000;
/** Where the caller does not set the time, the file may. */
const startRemedy =
  '. If it needs longer to start, set "startTimeoutSeconds" in the MCP configuration';

/** While a server restarts, its tools stay offered, so the prompt's prefix stays valid. After this many failures they are removed. */
const failuresToOpen = 5;
/** A server that was up for this long counts as working, even without a tool call. */
const steadyMs = 60_000;
/** The least time between two listings that the server asks for. */
const relistPauseMs = 250;
const complaintsAMinute = 10;

export class McpConnection {
  readonly id: string;
  readonly #config: McpServerConfig;
  readonly #options: McpConnectionOptions;
  readonly #policy: RestartPolicy;
  readonly #closing = new AbortController();
  #state: ToolServerState["state"] = "starting";
  #error: string | null = null;
  /** Set while the server is ready. */
  #session: McpSession | null = null;
  #readySince = 0;
  #tools: McpToolInfo[] = [];
  /** Null: no start has succeeded. */
  #instructions: string | null = null;
  readonly #pins = new ToolPins();
  #unused = "";
  #timer: NodeJS.Timeout | undefined;
  #connecting: Promise<void> | null = null;
  #listing: Promise<void> | null = null;
  #relistTimer: NodeJS.Timeout | undefined;
  #complaints = { since: 0, count: 0 };
  #callsBegun = 0;
  /** Calls that run, by number. */
  readonly #calls = new Set<number>();

  constructor(config: McpServerConfig, options: McpConnectionOptions) {
    this.id = config.id;
    this.#config = config;
    this.#options = options;
    this.#policy = new RestartPolicy({
      firstDelayMs: options.reconnectDelayMs ?? 1000,
      maxDelayMs: options.maxReconnectDelayMs ?? 30_000,
      failuresToOpen,
      openDelayMs: options.brokenDelayMs ?? 60_000,
    });
  }

  get config(): McpServerConfig {
    return this.#config;
  }

  get state(): ToolServerState["state"] {
    return this.#state;
  }

  /** The last failure, while the server is not ready. */
  get error(): string | null {
    return this.#error;
  }

  get transport(): TransportKind {
    return this.#session?.kind ?? transportKinds(this.#config)[0]!;
  }

  /** The tools that the operator offers, sorted by name. */
  get tools(): readonly McpToolInfo[] {
    return this.#tools;
  }

  /** For the model, as the server said at its last start. Undefined: it says nothing, or is not to be read. */
  get instructions(): string | undefined {
    return this.#instructions || undefined;
  }

  /** The server has changed the tool, and `acceptChange` was not called since. */
  hasChanged(tool: McpToolInfo): boolean {
    return this.#pins.hasChanged(tool);
  }

  /** A person has approved a call of the tool as it is now. */
  acceptChange(tool: McpToolInfo): void {
    if (!this.#pins.hasChanged(tool)) return;
    this.#pins.accept(tool);
    this.#options.onToolsChanged?.();
  }

  /** Starts the server and lists its tools. @throws FermataError mcp_start_failed */
  connect(): Promise<void> {
    this.#connecting ??= this.#connect().finally(() => {
      this.#connecting = null;
    });
    return this.#connecting;
  }

  /** Retries with growing pauses until the server starts. */
  keepTrying(reason: string, what = "MCP server not started, trying again later"): void {
    if (this.#closing.signal.aborted || this.#session !== null || this.#timer !== undefined) return;
    const delay = this.#policy.failed();
    this.#state = this.#policy.isOpen ? "failed" : "restarting";
    this.#error = reason;
    if (this.#policy.isOpen) this.#setTools([]);
    this.#options.log.warn(
      { server: this.id, reason, failures: this.#policy.failures, again_in_ms: delay },
      this.#policy.isOpen ? "MCP server out of order" : what,
    );
    this.#timer = setTimeout(() => void this.#reconnect(), delay);
    this.#timer.unref();
  }

  /** Lists the tools again. A failure keeps the old list. */
  refresh(): Promise<void> {
    this.#listing ??= this.#list().finally(() => {
      this.#listing = null;
    });
    return this.#listing;
  }

  /**
   * Runs a tool. After a timeout, its own or the signal's, a ping checks whether the server is still
   * alive, unless an earlier call still runs: it has the same time, so it has made progress since. @throws whatever the protocol reports; results with `isError` return
   */
  async callTool(
    tool: McpToolInfo,
    args: Record<string, unknown>,
    options: McpCallOptions,
  ): Promise<Record<string, unknown>> {
    const session = this.#session;
    if (session === null) throw this.#notReady();
    const number = ++this.#callsBegun;
    this.#calls.add(number);
    try {
      const result = await session.callTool(tool, args, options);
      this.#policy.succeeded();
      return result;
    } catch (error) {
      const isOldest = Math.min(...this.#calls) === number;
      if (isOldest && isTimeout(error, options.signal)) void this.#checkAlive(session);
      throw error;
    } finally {
      this.#calls.delete(number);
    }
  }

  /** Ends the server: closed input first, killed soon after. Idempotent. */
  async close(): Promise<void> {
    this.#closing.abort();
    clearTimeout(this.#timer);
    clearTimeout(this.#relistTimer);
    const session = this.#session;
    this.#session = null;
    await session?.close();
    await this.#connecting?.catch(() => {});
  }

  async #connect(): Promise<void> {
    const { log, version, model = "fermata", fetch, credentials } = this.#options;
    const connectTimeoutMs = this.#connectTimeoutMs;
    const { signal } = this.#closing;
    let session: McpSession | null = null;
    let lost: string | null = null;
    try {
      session = await McpSession.open(this.#config, {
        version,
        model,
        connectTimeoutMs,
        maxMessageBytes,
        fetch,
        credentials,
        signal,
        onStandardError: (text) => log.debug({ server: this.id, stderr: text }, "MCP server says"),
        onBreak: (reason) =>
          log.debug({ server: this.id, reason }, "MCP server's stream broke off"),
        onComplaint: (text) => this.#complain(text),
        onToolsChanged: () => this.#relistSoon(),
        onNote: (text) => log.info({ server: this.id, reason: text }, "MCP server asked"),
        onLost: (reason) => {
          lost = reason;
          if (session !== null) this.#onLost(session, reason);
        },
      });
      const list = await session.listTools();
      if (lost !== null) throw new FermataError("mcp_start_failed", lost);
      signal.throwIfAborted();
      this.#session = session;
      this.#state = "ready";
      this.#error = null;
      this.#readySince = performance.now();
      this.#takeInstructions(session);
      this.#takeList(list);
    } catch (cause) {
      await session?.close();
      const door =
        "command" in this.#config ? this.#config.command : new URL(this.#config.url).origin;
      const reason = session === null ? this.#failure(cause) : (lost ?? this.#failure(cause));
      const message = `MCP server "${this.id}" (${door}) did not start: ${reason}.`;
      throw new FermataError("mcp_start_failed", message, { cause });
    }
  }

  get #connectTimeoutMs(): number {
    const { connectTimeoutMs = defaultConnectTimeoutMs } = this.#options;
    return this.#config.startTimeoutMs ?? connectTimeoutMs;
  }

  #failure(error: unknown): string {
    if (isTimeout(error, this.#closing.signal)) {
      const seconds = this.#connectTimeoutMs / 1000;
      const remedy = this.#options.connectTimeoutMs === undefined ? startRemedy : "";
      return `it did not answer within ${seconds} seconds${remedy}`;
    }
    const isAsked = (error as { code?: unknown } | null)?.code === 401;
    const { credentials } = this.#options;
    const mayAsk = credentials !== undefined && "url" in this.#config;
    return describeError(
      isAsked && mayAsk && mayLogIn(this.#config.headers) ? needsLogin(this.id) : error,
      startErrorLength,
    );
  }

  async #reconnect(): Promise<void> {
    this.#timer = undefined;
    try {
      await this.connect();
      this.#options.log.info({ server: this.id, tools: this.#tools.length }, "MCP server is back");
    } catch (error) {
      this.keepTrying(describeError(error, startErrorLength));
    }
  }

  #onLost(session: McpSession, reason: string): void {
    if (session !== this.#session) return;
    if (performance.now() - this.#readySince > steadyMs) this.#policy.succeeded();
    this.#session = null;
    this.keepTrying(reason, "MCP server ended, starting it again");
  }

  /** A server that does not answer a ping is started again. */
  async #checkAlive(session: McpSession): Promise<void> {
    if (await session.ping(this.#options.pingTimeoutMs ?? 5000)) return;
    if (session !== this.#session) return;
    this.#onLost(session, "it answers nothing any more");
    await session.close();
  }

  #relistSoon(): void {
    if (this.#session === null || this.#relistTimer !== undefined) return;
    void this.refresh();
    this.#relistTimer = setTimeout(() => {
      this.#relistTimer = undefined;
      // Whatever changed since the listing began, which may still go on.
      void (this.#listing ?? Promise.resolve()).then(() => this.refresh());
    }, relistPauseMs);
    this.#relistTimer.unref();
  }

  async #list(): Promise<void> {
    const session = this.#session;
    if (session === null) return;
    try {
      const list = await session.listTools();
      if (session === this.#session) this.#takeList(list);
    } catch (error) {
      if (session !== this.#session) return;
      const fields = { server: this.id, error: describeError(error) };
      this.#options.log.warn(fields, "MCP tool list not refreshed");
      // Many servers do one thing at a time. How long a call may take is for its own time-out to say.
      if (this.#calls.size === 0 && isTimeout(error, this.#closing.signal))
        void this.#checkAlive(session);
    }
  }

  #takeList({ tools, problems }: { tools: McpToolInfo[]; problems: string[] }): void {
    const rules = this.#config.rules ?? noRules;
    const { log } = this.#options;
    if (problems.length > 0) this.#complain(`tool list: ${problems.join("; ")}`);
    const unused = unusedPatterns(
      rules,
      tools.map(({ name }) => name),
    ).join(", ");
    if (unused !== "" && unused !== this.#unused)
      log.warn({ server: this.id, unused }, "MCP configuration names tools that the server lacks");
    this.#unused = unused;
    this.#setTools(tools.filter(({ name }) => isOffered(rules, name)));
  }

  #takeInstructions({ instructions }: McpSession): void {
    if (this.#config.instructions === false || instructions === this.#instructions) return;
    if (this.#instructions !== null)
      this.#options.log.warn({ server: this.id }, "MCP server changed its instructions");
    this.#instructions = instructions;
    this.#options.onToolsChanged?.();
  }

  #setTools(tools: McpToolInfo[]): void {
    if (JSON.stringify(tools) === JSON.stringify(this.#tools)) return;
    for (const change of this.#pins.see(tools))
      this.#options.log.warn({ server: this.id, ...change }, "MCP server changed a tool");
    this.#tools = tools;
    this.#options.onToolsChanged?.();
  }

  /** Logs a few complaints a minute at most: a broken server must not fill the disk. */
  #complain(problem: string): void {
    const now = performance.now();
    if (now - this.#complaints.since > 60_000) this.#complaints = { since: now, count: 0 };
    this.#complaints.count += 1;
    if (this.#complaints.count > complaintsAMinute) return;
    this.#options.log.warn(
      { server: this.id, problem: plainText(problem, 1000) },
      "MCP server misbehaves",
    );
  }

  #notReady(): FermataError {
    const doing = this.#state === "failed" ? "is out of order" : "is being started again";
    const reason = this.#error === null ? "" : ` (${this.#error})`;
    return new FermataError("mcp_start_failed", `MCP server "${this.id}" ${doing}${reason}.`);
  }
}

/** JSON-RPC code of the SDK's McpError for a request that took too long. */
const requestTimeout = -32001;

export function isTimeout(error: unknown, signal: AbortSignal): boolean {
  if (signal.aborted) return (signal.reason as Error | undefined)?.name === "TimeoutError";
  return (error as { code?: unknown } | null)?.code === requestTimeout;
}
