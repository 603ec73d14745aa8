/** A tool that Fermata runs itself. Type-only. */

import type {
  ChatEvent,
  ChatMessage,
  FinishReason,
  JsonSchema,
  ToolCall,
  ToolDefinition,
} from "../chat/types.ts";

export interface ToolResult {
  /** Text for the model; with `isError`, the error's message. */
  content: string;
  isError: boolean;
  /** Sources of the text: file paths, URIs. */
  citations?: readonly string[] | undefined;
}

export type ToolOutcome = "ok" | "error" | "timeout" | "cancelled" | "denied";

export interface ToolRun {
  outcome: ToolOutcome;
  /** For the model. */
  content: string;
  citations: readonly string[];
  milliseconds: number;
}

/** Whether a person must approve each call. */
export type ApprovalPolicy = "never" | "always";

/** A report of a tool that is running. */
export type ToolReport =
  /** The tool's state, for people to read; never part of the result. */
  | {
      type: "progress";
      message?: string | undefined;
      progress?: number | undefined;
      total?: number | undefined;
    }
  /** The next part of its result: all parts in order are a prefix of the result's content. */
  | { type: "output"; text: string }
  /** An event of a sub-agent's run. */
  | { type: "agent"; agent: string; event: RunEvent };

export type ToolEvent =
  | { type: "tool-start"; call: ToolCall; server: string }
  | { type: "tool-report"; call: ToolCall; server: string; report: ToolReport }
  /** A person is asked whether the call may run. */
  | {
      type: "tool-approval";
      call: ToolCall;
      server: string;
      state: "asked" | "approved" | "denied";
      /** Of the question, where it is asked: a decision names it. */
      askingId?: string | undefined;
      /** The tool is not what it was: an earlier consent does not count. */
      hasChanged?: boolean;
      /** The call runs already, and its server asks. */
      question?: PersonQuestion | undefined;
      /** The server ended while the call ran: a person is asked whether it runs again. */
      mayHaveRun?: boolean;
    }
  | {
      type: "tool-end";
      call: ToolCall;
      server: string;
      outcome: ToolOutcome;
      /** The text that the model reads. */
      content: string;
      citations: readonly string[];
      milliseconds: number;
    };

/** Events of one answer: the model's and its tools'. */
export type RunEvent = ChatEvent | ToolEvent;

/** What a tool's server asks the person who looks on. */
export interface PersonQuestion {
  message: string;
  /** Of the answer: an object without objects in it. Absent: yes or no. */
  schema?: JsonSchema | undefined;
  /** A page that the person should open. */
  url?: string | undefined;
}

export type PersonAnswer =
  | { action: "accept"; content: Readonly<Record<string, unknown>> }
  | { action: "decline" }
  /** Nobody answered, or the person does not want to. */
  | { action: "cancel" };

/** A question of a tool's server to the model. */
export interface SampleRequest {
  messages: ChatMessage[];
  maxTokens: number;
  temperature?: number | undefined;
  stop: string[];
  /** The messages stand behind those of the request that made the call. */
  withCaller: boolean;
  signal: AbortSignal;
}

export interface SampleResult {
  text: string;
  reason: FinishReason;
  stopString?: string | undefined;
  tokens: number;
}

export interface ToolCallContext {
  callId: string;
  /** Aborted when nobody waits for the result any more. */
  signal: AbortSignal;
  /** Resolves when it is passed on. Never rejects. Reports after the end of the call are dropped. */
  report(report: ToolReport): Promise<void> | void;
  /** Whose request it is. */
  owner?: string | undefined;
  /** Undefined: nobody looks on. Never rejects. */
  ask?: ((question: PersonQuestion, signal: AbortSignal) => Promise<PersonAnswer>) | undefined;
  /** The model of the request. Undefined: it cannot be asked. @throws FermataError */
  sample?: ((request: SampleRequest) => Promise<SampleResult>) | undefined;
}

export interface Tool {
  readonly definition: ToolDefinition;
  /** The MCP server that runs the tool, or `agent`, …; a label of metrics and logs. */
  readonly server: string;
  /** The name on its server, if the model knows the tool by another name. */
  readonly originalName?: string | undefined;
  /** What its server says about its tools: it stands in the system message, once for each server. */
  readonly serverInstructions?: string | undefined;
  /** How long a call may be silent; replaces the caller's limit. */
  readonly timeoutMs?: number | undefined;
  /** How long a call may take in all; replaces the caller's limit. */
  readonly totalTimeoutMs?: number | undefined;
  /** The tool changes nothing, so a call may run before its round ends. */
  readonly readOnly?: boolean | undefined;
  /** It writes into the journal of calls by itself. A call that was interrupted is called again and goes on. */
  readonly keepsItself?: boolean | undefined;
  /**
   * Default: as the request's `ToolOversight` says. Where nobody can be asked, a call that must be approved is
   * not run.
   */
  readonly approval?: ApprovalPolicy | undefined;
  /** The client of the request runs it: a key needs no right to tools for it. */
  readonly clientRuns?: boolean | undefined;
  /** Its server has changed its definition, and no person has approved a call of it since. */
  readonly hasChanged?: boolean | undefined;
  /** A person has approved a call of the tool as it is now. */
  acceptChange?(): void;
  /** Never throws: failures, time-outs and cancellation come back as `isError` results. */
  call(args: unknown, context: ToolCallContext): Promise<ToolResult>;
}

/** Tools offered now. The list may change between requests, never within one. */
export interface ToolProvider {
  tools(): Tool[];
  /** The servers that run the tools, and their states. */
  servers?(): ToolServerState[];
  /** Waits for servers that are starting, up to a limit. @returns names of the servers that are still not ready */
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

/** The label is the `server` of its tools. */
export interface ConnectedServer {
  readonly tools: readonly Tool[];
  close(): Promise<void>;
}

export interface ToolServerState {
  name: string;
  transport: "stdio" | "http" | "sse";
  /** `failed`: it failed several times; its tools are not offered until it works again. */
  state: "starting" | "ready" | "restarting" | "failed";
  /** The last failure, while the server is not ready. */
  error: string | null;
  tools: Tool[];
}
