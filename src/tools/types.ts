/** A tool that Fermata runs itself. Type-only. */

import type { ChatEvent, ToolCall, ToolDefinition } from "../chat/types.ts";

export interface ToolResult {
  /** Text for the model. An error's message when `isError`. */
  content: string;
  isError: boolean;
  /** Where it comes from: file paths, URIs. */
  citations?: readonly string[] | undefined;
}

export type ToolOutcome = "ok" | "error" | "timeout" | "cancelled" | "denied";

/** Whether a person is asked before each call. */
export type ApprovalPolicy = "never" | "always";

/** What a tool tells while it runs. */
export type ToolReport =
  /** Of its state, for people; never part of the result. */
  | {
      type: "progress";
      message?: string | undefined;
      progress?: number | undefined;
      total?: number | undefined;
    }
  /** The next part of its result: all parts in order are a prefix of the result's content. */
  | { type: "output"; text: string }
  /** What a sub-agent does. */
  | { type: "agent"; agent: string; event: RunEvent };

export type ToolEvent =
  | { type: "tool-start"; call: ToolCall; server: string }
  | { type: "tool-report"; call: ToolCall; server: string; report: ToolReport }
  /** A person decides whether it runs. */
  | {
      type: "tool-approval";
      call: ToolCall;
      server: string;
      state: "asked" | "approved" | "denied";
    }
  | {
      type: "tool-end";
      call: ToolCall;
      server: string;
      outcome: ToolOutcome;
      /** What the model reads of it. */
      content: string;
      citations: readonly string[];
      milliseconds: number;
    };

/** What happens while an answer is made, by the model and by its tools. */
export type RunEvent = ChatEvent | ToolEvent;

export interface ToolCallContext {
  callId: string;
  /** Aborted when nobody waits for the result any more. */
  signal: AbortSignal;
  /** Never throws; what is told after the end is dropped. */
  report(report: ToolReport): void;
}

export interface Tool {
  readonly definition: ToolDefinition;
  /** Who runs it: an MCP server's name, `agent`, … Labels metrics and logs. */
  readonly server: string;
  /** What its server calls it, if the model knows it by another name. */
  readonly originalName?: string | undefined;
  /** Without a sign of life from a call, in place of the caller's limit. */
  readonly timeoutMs?: number | undefined;
  /** Of a call, whatever it reports, in place of the caller's limit. */
  readonly totalTimeoutMs?: number | undefined;
  /** Changes nothing, so that it may run before its round ends. */
  readonly readOnly?: boolean | undefined;
  /** Default: never. Where nobody can be asked, a call that must be approved is not run. */
  readonly approval?: ApprovalPolicy | undefined;
  /** Never throws: failures, time-outs and cancellation come back as `isError` results. */
  call(args: unknown, context: ToolCallContext): Promise<ToolResult>;
}

/** Tools offered now. The list may change between requests, never within one. */
export interface ToolProvider {
  tools(): Tool[];
  /** Who runs them, and how they are. */
  servers?(): ToolServerState[];
  /** Waits for servers that start, up to a limit. @returns names of those whose tools are not there then */
  missing?(): Promise<string[]>;
  close(): Promise<void>;
}

/** Connects to servers that a request names, where the operator allows it. */
export interface ServerConnector {
  /** @throws FermataError of status 4xx: the address is refused, or no MCP server answers there */
  connect(
    server: { label: string; url: string; headers: Readonly<Record<string, string>> },
    signal: AbortSignal,
  ): Promise<ConnectedServer>;
}

/** Its tools have the label as their server. */
export interface ConnectedServer {
  readonly tools: readonly Tool[];
  close(): Promise<void>;
}

export interface ToolServerState {
  name: string;
  transport: "stdio" | "http" | "sse";
  /** `failed`: it failed again and again; its tools are not offered until it works. */
  state: "starting" | "ready" | "restarting" | "failed";
  /** What went wrong last, while it is not ready. */
  error: string | null;
  tools: Tool[];
}
