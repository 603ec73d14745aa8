/** One tool of one MCP server. Every failure becomes a result that the model can read. */

import type { ToolDefinition } from "../chat/types.ts";
import type { ApprovalPolicy, Tool, ToolCallContext, ToolResult } from "../tools/types.ts";
import { asWritten } from "../json.ts";
import { mcpResultToText, readPathsOf } from "./content.ts";
import { type McpConnection, isTimeout } from "./connection.ts";
import { approvalOf, isReadOnly, noRules, untrusted } from "./rules.ts";
import { describeError, plainText } from "./text.ts";
import type { McpToolInfo } from "./tool-list.ts";

interface McpToolLimits {
  /** Without a sign of life from a call. */
  timeoutMs: number;
  /** Of a call, whatever it reports; undefined: the tool loop's. */
  maxResultBytes: number;
}

/** Progress that comes faster is dropped. */
const progressPauseMs = 50;
const maxMessageLength = 500;

export class McpTool implements Tool {
  readonly definition: ToolDefinition;
  readonly server: string;
  readonly originalName: string;
  readonly serverInstructions: string | undefined;
  readonly readOnly: boolean;
  readonly approval: ApprovalPolicy | undefined;
  readonly hasChanged: boolean;
  readonly timeoutMs: number | undefined;
  readonly totalTimeoutMs: number | undefined;
  readonly #connection: McpConnection;
  readonly #info: McpToolInfo;
  readonly #limits: McpToolLimits;

  constructor(
    exposedName: string,
    info: McpToolInfo,
    connection: McpConnection,
    limits: McpToolLimits,
  ) {
    const { rules = noRules, timeoutMs, totalTimeoutMs } = connection.config;
    this.definition = {
      name: exposedName,
      description: info.description,
      parameters: info.inputSchema,
    };
    this.server = connection.id;
    this.originalName = info.name;
    this.serverInstructions = connection.instructions;
    this.hasChanged = connection.hasChanged(info);
    const annotations = this.hasChanged ? untrusted : info.annotations;
    this.readOnly = isReadOnly(rules, info.name, annotations);
    this.approval = approvalOf(rules, info.name, annotations);
    this.timeoutMs = timeoutMs;
    this.totalTimeoutMs = totalTimeoutMs;
    this.#connection = connection;
    this.#info = info;
    this.#limits = limits;
  }

  acceptChange(): void {
    this.#connection.acceptChange(this.#info);
  }

  async call(args: unknown, context: ToolCallContext): Promise<ToolResult> {
    if (typeof args !== "object" || args === null || Array.isArray(args)) {
      return { content: "Error: the arguments must be a JSON object.", isError: true };
    }
    const { signal, owner, ask, sample } = context;
    const { maxResultBytes } = this.#limits;
    // The tool loop's own time-out comes first and says so; this one is the backstop.
    const timeoutMs = this.timeoutMs === undefined ? this.#limits.timeoutMs : this.timeoutMs + 1000;
    try {
      const values = args as Record<string, unknown>;
      const exact = asWritten(values) as Record<string, unknown>;
      const result = await this.#connection.callTool(this.#info, exact, {
        signal,
        owner,
        ask,
        sample,
        timeoutMs,
        onProgress: throttled(context),
      });
      const reader = { name: this.originalName, readOnly: this.readOnly };
      return mcpResultToText(result, {
        maxBytes: maxResultBytes,
        readPaths: readPathsOf(reader, values),
      });
    } catch (error) {
      return { content: `Error: ${this.#explain(error, signal, timeoutMs)}`, isError: true };
    }
  }

  #explain(error: unknown, signal: AbortSignal, timeoutMs: number): string {
    if (isTimeout(error, signal))
      return `the tool did not answer within ${timeoutMs / 1000} seconds.`;
    if (signal.aborted) return "the call was cancelled.";
    return describeError(error);
  }
}

/** A server's progress as a report: the first at once, then with pauses, the last in any case. */
function throttled({
  report,
}: ToolCallContext): (it: {
  progress: number;
  total?: number | undefined;
  message?: string | undefined;
}) => void {
  let next = 0;
  return ({ progress, total, message }) => {
    const now = performance.now();
    if (now < next && progress !== total) return;
    next = now + progressPauseMs;
    void report({
      type: "progress",
      progress,
      ...(total === undefined ? {} : { total }),
      ...(message === undefined ? {} : { message: plainText(message, maxMessageLength) }),
    });
  };
}
