/** Runs one call: finds its tool, checks its arguments, limits its time. Never throws. */

import type { ToolCall } from "../chat/types.ts";
import { argumentsToRun } from "./call-audit.ts";
import { farNumber, parseWithDigits } from "../json.ts";
import { nearNames } from "../near-names.ts";
import { longestDelayMs } from "../waits.ts";
import type { Deadline } from "./loop-budget.ts";
import {
  policyOf,
  type TellApproval,
  type ToolOversight,
  questionsOf,
  seekApproval,
} from "./oversight.ts";
import type {
  Tool,
  ToolCallContext,
  ToolOutcome,
  ToolReport,
  ToolResult,
  ToolRun,
} from "./types.ts";

export interface ToolRunOptions {
  /** How long the call may be silent; each report starts the time again. */
  timeoutMs: number;
  /** How long the call may take in all. Default: ten minutes, or `timeoutMs` if that is longer. */
  totalTimeoutMs?: number | undefined;
  /** Default: none. */
  deadline?: Deadline | undefined;
  signal: AbortSignal;
  /** Until the run ends. */
  report: (report: ToolReport) => Promise<void> | void;
  oversight?: ToolOversight | undefined;
  onApproval?: TellApproval | undefined;
  /** Asks the model of the request. Default: it cannot be asked. */
  sample?: ToolCallContext["sample"];
}

const DEFAULT_TOTAL_MS = 600_000;
const aliveMs = 1000;

const MAX_LISTED = 20;
/** Server of a call that names no tool. */
export const unknownServer = "unknown";

export function findTool(call: ToolCall, tools: readonly Tool[]): Tool | undefined {
  return tools.find((tool) => tool.definition.name === call.name);
}

export async function runTool(
  call: ToolCall,
  tools: readonly Tool[],
  options: ToolRunOptions,
): Promise<ToolRun> {
  const { audit = null, owner = "", approvals, journal } = options.oversight ?? {};
  const known = journal?.known(call.id);
  if (known?.at === "decided" || (known?.at === "ended" && mayAsk(call, tools, options)))
    approvals?.recall(owner, call.id);
  if (known?.at === "ended") return known.run;
  const checked = await check(call, tools, options);
  const server = findTool(call, tools)?.server ?? unknownServer;
  const entry = { call, server, owner, approvedBy: checked.mayRun ? checked.approvedBy : null };
  if (checked.mayRun) await audit?.started(entry);
  const run = checked.mayRun
    ? await runKept(call, checked, options)
    : notRun(checked.outcome, checked.content);
  await audit?.ended(entry, run);
  return run;
}

function mayAsk(
  call: ToolCall,
  tools: readonly Tool[],
  { oversight }: Pick<ToolRunOptions, "oversight">,
): boolean {
  const tool = findTool(call, tools);
  return tool !== undefined && policyOf(tool, oversight?.asksPerson ?? false) !== "never";
}

/** What is not kept as started does not run, and what is not kept as ended may have run. */
async function runKept(
  call: ToolCall,
  { tool, args }: { tool: Tool; args: unknown },
  options: ToolRunOptions,
): Promise<ToolRun> {
  const { journal } = options.oversight ?? {};
  try {
    if (tool.keepsItself !== true) await journal?.note(call.id, { at: "started" });
  } catch {
    return notRun("error", "Error: not run: the server could not write down that it runs.");
  }
  const run = await runBounded(call, tool, args, options);
  if (run.outcome !== "cancelled")
    await journal?.note(call.id, { at: "ended", run }).catch(() => {});
  return run;
}

type Checked =
  | { mayRun: true; tool: Tool; args: unknown; approvedBy: string | null }
  | { mayRun: false; outcome: ToolOutcome; content: string };

async function check(
  call: ToolCall,
  tools: readonly Tool[],
  { signal, oversight, onApproval: tell = () => {} }: ToolRunOptions,
): Promise<Checked> {
  const tool = findTool(call, tools);
  if (tool === undefined)
    return { mayRun: false, outcome: "error", content: unknownTool(call.name, tools) };
  const args = readArguments(call);
  if (typeof args === "string") return { mayRun: false, outcome: "error", content: args };
  const consent = await seekApproval(call, tool, oversight, { signal, tell });
  return consent.mayRun ? { ...consent, tool, args: args.value } : consent;
}

async function runBounded(
  call: ToolCall,
  tool: Tool,
  args: unknown,
  options: ToolRunOptions,
): Promise<ToolRun> {
  const { signal } = options;
  const silentMs = tool.timeoutMs ?? options.timeoutMs;
  const totalMs =
    tool.totalTimeoutMs ?? Math.max(silentMs, options.totalTimeoutMs ?? DEFAULT_TOTAL_MS);
  const started = performance.now();
  const controller = new AbortController();
  let problem = "";
  let ended = false;
  const giveUp = (text: string): void => {
    problem = text;
    controller.abort(new DOMException(text, "TimeoutError"));
  };
  // A tool may ignore its signal, so nobody waits longer than this.
  const stopped = new Promise<"timeout" | "cancelled">((resolve) => {
    controller.signal.addEventListener(
      "abort",
      () => resolve(signal.aborted ? "cancelled" : "timeout"),
      { once: true },
    );
  });
  const silence = setTimeout(
    () => giveUp(`did not answer within ${silentMs / 1000} seconds`),
    silentMs,
  );
  const total = setTimeout(() => giveUp(`took more than ${totalMs / 1000} seconds`), totalMs);
  const { at = Infinity, seconds = 0 } = options.deadline ?? {};
  const leftMs = Math.min(at - started, longestDelayMs);
  const stop = (): void =>
    giveUp(`was stopped: the limit of ${seconds} seconds for the tools of one answer is reached`);
  // A person may have thought for longer than that: then it does not begin.
  if (leftMs <= 0) stop();
  const last = setTimeout(stop, leftMs);
  const report = async (it: ToolReport): Promise<void> => {
    if (ended) return;
    silence.refresh();
    await options.report(it);
  };
  /** A call whose server waits for an answer is not silent. */
  const awake = async <Result>(work: Promise<Result>): Promise<Result> => {
    const timer = setInterval(() => silence.refresh(), Math.min(aliveMs, silentMs / 2));
    return await work.finally(() => clearInterval(timer));
  };
  const cancel = (): void => controller.abort(signal.reason);
  if (signal.aborted) cancel();
  signal.addEventListener("abort", cancel, { once: true });
  try {
    const { oversight, sample, onApproval: tell = () => {} } = options;
    const { signal: ended } = controller;
    const asking = { call, tool, oversight, sample, signal: ended, tell, awake };
    const context = { callId: call.id, signal: ended, report, ...questionsOf(asking) };
    const result = await Promise.race([
      stopped,
      controller.signal.aborted ? stopped : callTool(tool, args, context),
    ]);
    const milliseconds = performance.now() - started;
    if (result === "timeout") {
      const content = `Error: the tool "${tool.definition.name}" ${problem}.`;
      return { outcome: "timeout", content, citations: [], milliseconds };
    }
    if (result === "cancelled")
      return { outcome: "cancelled", content: "Error: cancelled.", citations: [], milliseconds };
    const { citations = [] } = result;
    const content = result.content.trim() === "" ? emptyResult(tool, args) : result.content;
    return { outcome: result.isError ? "error" : "ok", content, citations, milliseconds };
  } finally {
    ended = true;
    clearTimeout(silence);
    clearTimeout(total);
    clearTimeout(last);
    signal.removeEventListener("abort", cancel);
  }
}

async function callTool(tool: Tool, args: unknown, context: ToolCallContext): Promise<ToolResult> {
  try {
    return await tool.call(args, context);
  } catch (error) {
    return {
      content: `Error: ${error instanceof Error ? error.message : String(error)}`,
      isError: true,
    };
  }
}

/** Text for an empty result. Without it, models call again with the same arguments. */
function emptyResult({ definition, readOnly = false }: Tool, args: unknown): string {
  const { name, parameters } = definition;
  const required = Array.isArray(parameters["required"]) ? parameters["required"] : [];
  const optional = Object.keys(args as object).filter((key) => !required.includes(key));
  // What a call without them would do is known only where it does nothing.
  if (!readOnly || optional.length === 0) return "The result is empty.";
  const [what, them] = optional.length === 1 ? ["argument", "it"] : ["arguments", "them"];
  const names = optional.map((key) => JSON.stringify(key)).join(", ");
  return `The result is empty. The optional ${what} ${names} may be why: call ${name} again without ${them}.`;
}

function notRun(outcome: ToolOutcome, content: string): ToolRun {
  return { outcome, content, citations: [], milliseconds: 0 };
}

function unknownTool(name: string, tools: readonly Tool[]): string {
  const names = tools.map((tool) => tool.definition.name);
  const near = nearNames(name, names);
  const hint =
    near.length > 0
      ? `Did you mean ${near.join(", ")}?`
      : `The tools are: ${names.slice(0, MAX_LISTED).join(", ")}.`;
  return `Error: there is no tool "${name}". ${hint}`;
}

/** @returns what is wrong, as text for the model, or the value */
function readArguments(call: ToolCall): string | { value: unknown } {
  try {
    // Some servers write nothing for a call without arguments.
    const value: unknown = parseWithDigits(argumentsToRun(call).trim() || "{}");
    if (typeof value !== "object" || value === null || Array.isArray(value))
      return `Error: the arguments of "${call.name}" must be a JSON object. Call it again with one.`;
    const far = farNumber(value);
    if (far !== null)
      return `Error: the arguments of "${call.name}" have at ${far} a number beyond 1.8e308. Call it again with a smaller one.`;
    return call.problem === undefined || call.mayFit === true || call.withoutNulls !== undefined
      ? { value }
      : `Error: the arguments of "${call.name}" do not fit its schema: ${call.problem}. Call it again.`;
  } catch (error) {
    const problem = error instanceof Error ? error.message : String(error);
    return `Error: the arguments of "${call.name}" are not valid JSON (${problem}). Call it again with a JSON object.`;
  }
}
