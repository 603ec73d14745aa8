/** Items of a conversation as the messages that the model's template renders. */

import type { ChatMessage, ToolCall } from "../../../chat/types.ts";
import { customArguments } from "../../body/custom-input.ts";
import { outputText } from "../calls/client-calls.ts";
import { compactionText } from "./compaction.ts";
import { decodeText } from "./encoded.ts";
import { roundOf } from "../../answer/ids.ts";
import type { Parts } from "../../../parts.ts";
import type { Item } from "../types.ts";

/** The name under which the model knows a tool of a namespace or an MCP server. */
export interface ToolNames {
  functionName(name: string, namespace: string | undefined): string;
  mcpName(server: string, name: string): string;
}

type AssistantTurn = {
  role: "assistant";
  content: string;
  reasoning?: string;
  toolCalls?: ToolCall[];
};

/**
 * Items are finer than messages: reasoning, text and the calls of one round become one assistant
 * message, as they were one turn of the model. `instructions` come first.
 */
export function* toMessages(
  items: readonly Item[],
  instructions: string | null,
  names: ToolNames,
): Parts<ChatMessage[]> {
  const writer = new MessageWriter(names);
  if (instructions !== null && instructions !== "") writer.system(instructions);
  for (const item of items) {
    writer.write(item);
    yield;
  }
  return writer.finish();
}

class MessageWriter {
  readonly messages: ChatMessage[] = [];
  readonly #names: ToolNames;
  /** The last message, if more of its turn may come. */
  #turn: AssistantTurn | null = null;
  /** What the calls of an MCP round in `#turn` begin with, and their results, which follow the turn. */
  #mcpRound = "";
  #mcpResults: ChatMessage[] = [];
  readonly #requests = new Map<string, Item>();
  #summary: ChatMessage | null = null;
  /** Calls whose turns a summary has taken the place of, by id. */
  readonly #summarized = new Map<string, ToolCall>();

  constructor(names: ToolNames) {
    this.#names = names;
  }

  write(item: Item): void {
    switch (item.type) {
      case "message":
        return this.#message(item);
      case "reasoning":
        return this.#reasoning(item);
      case "function_call":
        return this.#call(item, String(item["arguments"]));
      case "custom_tool_call":
        return this.#call(item, customArguments(String(item["input"])));
      case "function_call_output":
      case "custom_tool_call_output":
        return this.#output(String(item["call_id"]), outputText(item["output"]));
      case "mcp_call":
        return this.#mcpCall(item);
      case "mcp_approval_request":
        this.#requests.set(item.id, item);
        return;
      case "mcp_approval_response":
        return this.#approvalResponse(item);
      case "compaction":
        return this.#compaction(String(item["encrypted_content"]));
      default:
      // Lists of tools and settings are no part of what the model reads.
    }
  }

  /** One that does not lead keeps its place as a user's: moving it would change the first tokens of the prompt and lose the cache. */
  system(content: string): void {
    const leads = (this.messages.at(-1)?.role ?? "system") === "system";
    this.#push({ role: leads ? "system" : "user", content });
  }

  #message(item: Item): void {
    const parts = item["content"] as { text: string }[];
    const content = parts.map((part) => part.text).join("\n");
    const role = item["role"];
    if (role === "user") this.#push({ role, content });
    else if (role === "assistant") this.#assistantText(content);
    else this.system(content);
  }

  /** Behind calls that have no output yet, or between them, the model has said it in the same turn. */
  #assistantText(content: string): void {
    const turn = this.#mcpResults.length > 0 ? null : this.#turn;
    if (turn?.toolCalls !== undefined) turn.content += content;
    else if (turn?.content === "") turn.content = content;
    else this.#openTurn().content = content;
  }

  #reasoning(item: Item): void {
    const parts = item["content"] as { text?: unknown }[];
    const told = parts.map((part) => (typeof part.text === "string" ? part.text : "")).join("");
    const { encrypted_content: encoded } = item;
    // Clients that keep nothing readable of it send back what they were given to carry.
    const carried = typeof encoded === "string" ? decodeText("reasoning", encoded) : null;
    const text = told === "" ? (carried ?? "") : told;
    if (text !== "") this.#openTurn().reasoning = text;
  }

  #call(item: Item, args: string): void {
    const namespace = item["namespace"] as string | undefined;
    const name = this.#names.functionName(String(item["name"]), namespace);
    this.#addCall(item, { id: String(item["call_id"]), name, arguments: args });
  }

  #addCall({ id }: Pick<Item, "id">, call: ToolCall): void {
    if (this.#mcpResults.length > 0 && roundOf(id) !== this.#mcpRound) this.#closeTurn();
    const turn = this.#turn ?? this.#openTurn();
    (turn.toolCalls ??= []).push(call);
  }

  #mcpCall(item: Item): void {
    const name = this.#names.mcpName(String(item["server_label"]), String(item["name"]));
    this.#addCall(item, { id: item.id, name, arguments: String(item["arguments"]) });
    this.#mcpRound = roundOf(item.id);
    const content = item["output"] ?? item["error"] ?? "";
    this.#mcpResults.push({ role: "tool", toolCallId: item.id, content: String(content) });
  }

  /** The call comes back with an output that the summary does not know: without it, the model would not see what it answers. */
  #output(toolCallId: string, content: string): void {
    const call = this.#summarized.get(toolCallId);
    this.#summarized.delete(toolCallId);
    if (call !== undefined) this.#openTurn().toolCalls = [call];
    this.#push({ role: "tool", toolCallId, content });
  }

  /** A summary that can be read takes the place of the turns before it; the users' words stay, as in its making. */
  #compaction(encoded: string): void {
    const { text: content, isRead } = compactionText(encoded);
    this.#closeTurn();
    if (isRead) {
      for (const message of this.messages)
        if (message.role === "assistant")
          for (const call of message.toolCalls ?? []) this.#summarized.set(call.id, call);
      const kept = this.messages.filter(
        (message) => message !== this.#summary && ["system", "user"].includes(message.role),
      );
      this.messages.splice(0, this.messages.length, ...kept);
    }
    this.#summary = { role: "user", content };
    this.#push(this.#summary);
  }

  /** A call that was allowed stands for itself, once it was run. */
  #approvalResponse(item: Item): void {
    const request = this.#requests.get(String(item["approval_request_id"]));
    if (request === undefined || item["approve"] === true) return;
    this.#mcpCall({ ...request, output: "Error: the user did not allow this call." });
  }

  #openTurn(): AssistantTurn {
    const turn: AssistantTurn = { role: "assistant", content: "" };
    this.#push(turn);
    this.#turn = turn;
    return turn;
  }

  #push(message: ChatMessage): void {
    this.#closeTurn();
    this.messages.push(message);
  }

  #closeTurn(): void {
    this.#turn = null;
    this.messages.push(...this.#mcpResults);
    this.#mcpResults = [];
  }

  finish(): ChatMessage[] {
    this.#closeTurn();
    return this.messages;
  }
}
