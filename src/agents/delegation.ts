/** How a delegation looks as a tool call. The model that ships was trained on this form. */

import { isJsonObject, parseJson } from "../json.ts";
import type { ChatMessage, ToolCall, ToolDefinition } from "../chat/types.ts";

/** `Tool.server` of delegations; no MCP server may have this name. */
export const delegationServer = "agent";

export interface Delegation {
  agent: string;
  task: string;
}

/** Null: the call is no delegation, or its arguments do not say to whom. */
export function delegationOf(call: ToolCall, server: string): Delegation | null {
  return server === delegationServer ? readDelegation(parseJson(call.arguments)) : null;
}

export function readDelegation(args: unknown): Delegation | null {
  if (!isJsonObject(args)) return null;
  const { agent, task } = args;
  return typeof agent === "string" && typeof task === "string" ? { agent, task } : null;
}

/** @param taken names that the agent's other tools have */
export function delegateDefinition(
  agents: readonly { name: string; description: string }[],
  taken: ReadonlySet<string>,
): ToolDefinition {
  const names = agents.map(({ name }) => name);
  const lines = agents.map(({ name, description }) => `- ${name}: ${description}`);
  return {
    name: taken.has("delegate") ? "delegate_task" : "delegate",
    description: [`Run a task with one of the agents: ${names.join(", ")}.`, ...lines].join("\n"),
    parameters: {
      type: "object",
      properties: {
        agent: { type: "string", enum: names, description: "Name of the agent" },
        task: { type: "string", description: "What the agent has to do" },
      },
      required: ["agent", "task"],
    },
  };
}

/** Many templates take one system message, and that first: instructions stand before what a client's says. */
export function systemMessages(
  instructions: string,
  messages: readonly ChatMessage[],
): ChatMessage[] {
  if (instructions === "") return [...messages];
  const [first, ...rest] = messages;
  if (first?.role !== "system") return [{ role: "system", content: instructions }, ...messages];
  return [{ role: "system", content: `${instructions}\n\n${first.content}` }, ...rest];
}
