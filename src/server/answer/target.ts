/** Who answers a request, the served model or an agent, and who runs its tools. */

import { drawSeed } from "./choices.ts";
import { AgentRun } from "../../agents/agent-run.ts";
import { systemMessages } from "../../agents/delegation.ts";
import type { Agent, AgentModel } from "../../agents/types.ts";
import type { ChatMessage, ToolDefinition } from "../../chat/types.ts";
import type { ToolProvider, Tool } from "../../tools/types.ts";
import { isJsonObject } from "../../json.ts";
import { finishInTurns, type Parts } from "../../parts.ts";
import { fieldError } from "../body/field.ts";
import type { SamplingLimits } from "../body/generation.ts";
import type { OnceWarnings, Warn } from "../body/warnings.ts";
import { callsOfMessages } from "../http/history-gaps.ts";
import type { ServedModel, ServerConfig, ServerServices } from "../services.ts";
import type { ToolLoopOptions } from "../../tools/tool-loop.ts";
import type { ToolChoice } from "../body/tools.ts";

export interface Target extends SamplingLimits {
  /** `model` of the answer. */
  id: string;
  chat: AgentModel["chat"];
  /** The tools for a request without tools of its own. Null: none. */
  tools: Pick<ToolProvider, "tools" | "servers"> | null;
  /** Null: the model itself answers. */
  run: AgentRun | null;
  /** The messages for the model: an agent's instructions come first. */
  instruct(messages: readonly ChatMessage[]): ChatMessage[];
}

export interface TargetContext {
  services: Pick<ServerServices, "chat" | "agents" | "tools" | "model">;
  config: Pick<ServerConfig, "sampling">;
  warnings: OnceWarnings;
}

/**
 * Call it once per request, because an agent's limits belong to one run. Unknown names select the served model.
 * @param replaced of its own chat, not of the agents below it
 */
export function resolveTarget(
  wanted: string | null,
  context: TargetContext,
  replaced: (chat: AgentModel["chat"]) => AgentModel["chat"] = (chat) => chat,
): Target {
  const agent = wanted === null ? undefined : agentCalled(wanted, context.services);
  if (agent !== undefined) {
    const model = { ...agent.model, chat: replaced(agent.model.chat) };
    return agentTarget({ ...agent, model, tools: () => agent.tools() }, context);
  }
  warnOfModel(wanted, context);
  const { chat, tools, model } = context.services;
  const { id, contextSize, vocabularySize, maxTokens } = model;
  return {
    id,
    contextSize,
    vocabularySize,
    maxTokens,
    sampling: { ...context.config.sampling, seed: drawSeed(), logitBias: [] },
    chat: replaced(chat),
    tools,
    run: null,
    instruct: (messages) => [...messages],
  };
}

/** Who answers a request, and what its body asks for. @throws what `parse` does */
export async function readRequest<Body>(
  wire: unknown,
  parse: (wire: unknown, limits: SamplingLimits, warn: Warn) => Parts<Body>,
  context: TargetContext,
): Promise<{ target: Target; body: Body }> {
  const target = resolveTarget(wantedModel(wire), context);
  return { target, body: await finishInTurns(parse(wire, target, context.warnings.warn)) };
}

/** `model` of a body that is not checked yet. */
export function wantedModel(body: unknown): string | null {
  const model = isJsonObject(body) ? body["model"] : null;
  return typeof model === "string" ? model : null;
}

/** Ollama's lists have it behind every name. */
export const latestTag = ":latest";

/** A name with Ollama's tag stands for the one without it, on every wire, where nothing is called so. */
export function calledName(name: string, isKnown: (name: string) => boolean): string {
  return name.endsWith(latestTag) && !isKnown(name) ? name.slice(0, -latestTag.length) : name;
}

/** The one of `names` that is called, with Ollama's tag or without. Undefined: none is. */
export function nameCalled(wanted: string, names: readonly string[]): string | undefined {
  const called = calledName(wanted, (name) => names.includes(name));
  return names.find((name) => name === called);
}

/** The one of `names` that a body calls, as the body has it. The first: it calls none of them. */
export function asCalled(body: unknown, names: readonly string[]): string {
  const wanted = wantedModel(body) ?? "";
  return nameCalled(wanted, names) === undefined ? names[0]! : wanted;
}

export function agentCalled(
  name: string,
  { agents }: Pick<ServerServices, "agents">,
): Agent | undefined {
  return agents?.find(calledName(name, (one) => agents.find(one) !== undefined));
}

/**
 * An agent reads a conversation, and a bare prompt has none.
 * @param path of conversations
 * @throws FermataError unsupported_value
 */
export function refuseAgent(
  wanted: string | null | undefined,
  services: Pick<ServerServices, "agents">,
  path: string,
): void {
  if (wanted === null || wanted === undefined || agentCalled(wanted, services) === undefined)
    return;
  throw fieldError("unsupported_value", "model", "names an agent", `Send messages to ${path}`);
}

/** The names of the model in requests; the first is its own. */
export function namesOf({ id, aliases = [] }: ServedModel): string[] {
  return [id, ...aliases];
}

/** One model is loaded, and answers to every name. */
export function warnOfModel(
  wanted: string | null = "default",
  { services, warnings }: Pick<TargetContext, "services" | "warnings">,
): void {
  const { model } = services;
  const names = ["default", ...namesOf(model)];
  if (wanted === null || nameCalled(wanted, names) !== undefined) return;
  warnings.warn(`model=${wanted}`, `names a model that is not loaded; ${model.id} answers`);
}

function agentTarget(agent: Agent, { services }: Pick<TargetContext, "services">): Target {
  const run = new AgentRun(agent, (name) => services.agents?.find(name));
  const { contextSize, vocabularySize, sampling } = agent.model;
  return {
    id: agent.name,
    contextSize,
    vocabularySize,
    sampling: { ...sampling, seed: drawSeed(), logitBias: [], ...agent.sampling },
    chat: run.chat,
    tools: { tools: () => [...run.tools] },
    run,
    instruct: (messages) => systemMessages(agent.instructions, messages),
  };
}

export type ToolMode =
  | {
      kind: "none";
      /** In the prompt all the same, though none may be called. Default: none. */
      shown?: readonly ToolDefinition[];
    }
  | { kind: "external"; tools: ToolDefinition[] }
  | {
      kind: "internal";
      tools: Tool[];
      /** For requests that mix these tools with their own. */
      limits?: Pick<ToolLoopOptions, "offered" | "handsOver" | "maxCalls"> | undefined;
    };

/**
 * | request has `tools` | MCP configured | mode     |
 * |---------------------|----------------|----------|
 * | no                  | no             | none     |
 * | yes                 | either         | external |
 * | no                  | yes            | internal |
 *
 * An empty list counts as given, so the prompt has no MCP tools. Then there is nothing to call, and call markers are
 * plain text. The same is true for `tool_choice: "none"` (but see `withoutCalls`), and while no MCP server offers a tool.
 */
export function resolveToolMode(
  request: {
    tools: ToolDefinition[] | null;
    toolChoice: Pick<ToolChoice, "mode">;
    messages: readonly ChatMessage[];
  },
  provider: Pick<ToolProvider, "tools"> | null,
): ToolMode {
  const { tools, toolChoice, messages } = request;
  const isOff = toolChoice.mode === "none";
  if (tools !== null) {
    const mode: ToolMode = tools.length === 0 ? { kind: "none" } : { kind: "external", tools };
    return isOff ? withoutCalls(mode, callsOfMessages(messages).length > 0) : mode;
  }
  const served = isOff ? [] : (provider?.tools() ?? []);
  return served.length === 0 ? { kind: "none" } : { kind: "internal", tools: served };
}

/**
 * What `tool_choice: "none"` makes of a mode. A conversation that has called its client's tools keeps them in its prompt: it
 * finds itself in the cache, and reads what it called. Agents ask so for their last words.
 */
export function withoutCalls(mode: ToolMode, hasCalls: boolean): ToolMode {
  return mode.kind === "external" && hasCalls
    ? { kind: "none", shown: mode.tools }
    : { kind: "none" };
}

/** The tools that can be called. */
export function definitionsOf(mode: ToolMode): readonly ToolDefinition[] {
  return mode.kind === "none" ? [] : promptToolsOf(mode);
}

/** The tools in the prompt. */
export function promptToolsOf(mode: ToolMode): readonly ToolDefinition[] {
  if (mode.kind === "external") return mode.tools;
  if (mode.kind === "none") return mode.shown ?? [];
  return mode.limits?.offered ?? mode.tools.map((tool) => tool.definition);
}
