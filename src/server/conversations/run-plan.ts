/** The plan of a run: its prompt, its tools, and the position of its answer in the tree. */

import type { ChatMessage, ChatRequest } from "../../chat/types.ts";
import { FermataError } from "../../errors.ts";
import type { DocumentFormat } from "../../guidance/types.ts";
import type { BranchedConversation } from "../../store/types.ts";
import { nearNames } from "../../near-names.ts";
import type { Tool } from "../../tools/types.ts";
import { fieldError } from "../body/field.ts";
import { newId } from "../answer/ids.ts";
import type { Warn } from "../body/warnings.ts";
import { documentFields, guidanceOf } from "../body/guidance.ts";
import type { Target, ToolMode } from "../answer/target.ts";
import type { Message, MessageBody, UserBody } from "./message-body.ts";
import type { ConversationSettings } from "./fields.ts";
import type { RunInput, RunRequest } from "./run-request.ts";

export interface RunStart {
  owner: string;
  conversation: BranchedConversation;
  messages: readonly Message[];
  settings: ConversationSettings;
  request: RunRequest;
}

export interface RunPlan {
  chat: Omit<ChatRequest, "tools" | "toolMode" | "owner" | "signal">;
  mode: ToolMode;
  /** Names of the tools of `mode`; null: all that there are. */
  tools: string[] | null;
  /** The user's message that the run answers. */
  question: { message: Message; body: UserBody; isNew: boolean };
}

/** @throws FermataError of status 4xx */
export function planRun(
  { conversation, messages, settings, request }: RunStart,
  target: Target,
  warn: Warn,
): RunPlan {
  const question = questionOf(request.input, messages, conversation.leafId);
  const before = pathTo(messages, question.message.parentId);
  const branch = [...before, question.message];
  const isOwn = request.settings.tools !== undefined;
  const tools = isOwn ? settings.tools : stillOffered(settings.tools, target.tools, warn);
  return {
    chat: {
      messages: target.instruct(promptOf(branch, settings.instructions)),
      ...request.sampling(target),
      stop: [],
      templateVariables: request.templateVariables,
      guidance: guidanceOf(
        { mode: "auto" },
        { document: documentOf(settings), parallel: true, closeAtLimit: false },
      ),
    },
    mode: modeOf(tools, target.tools),
    tools,
    question,
  };
}

/** It was checked on arrival. */
function documentOf({ responseFormat: format }: ConversationSettings): DocumentFormat | undefined {
  const { response_format: field } = documentFields;
  return field.read(format, "response_format", { warn: () => {} }) ?? undefined;
}

function questionOf(
  input: RunInput,
  messages: readonly Message[],
  leafId: string | null,
): RunPlan["question"] {
  if (input.kind === "retry") {
    const target = messages.find(({ id }) => id === input.messageId);
    const message =
      target?.body.role === "assistant"
        ? messages.find(({ id }) => id === target.parentId)
        : target;
    if (message === undefined || message.body.role !== "user")
      throw fieldError("invalid_value", "retry", "names no message", "Send a message's id");
    return { message, body: message.body, isNew: false };
  }
  const parentId = input.parentId === undefined ? leafId : input.parentId;
  checkParent(parentId, messages);
  const { text, filesOf } = input;
  const files = filesOf === undefined ? input.files : attachedTo(filesOf, messages);
  if (text.trim() === "" && files.length === 0)
    throw fieldError("invalid_value", "message", "is empty", "Send a text");
  const body: UserBody = { role: "user", message: text, files };
  const message = { id: newId("msg"), parentId, createdAt: 0, runId: null, body };
  return { message, body, isNew: true };
}

function attachedTo(messageId: string, messages: readonly Message[]): UserBody["files"] {
  const body = messages.find(({ id }) => id === messageId)?.body;
  if (body?.role === "user") return body.files;
  const problem = body === undefined ? "names no message" : "is an answer";
  throw fieldError("invalid_value", "files_of", problem, "Send the id of a user's message");
}

function checkParent(parentId: string | null, messages: readonly Message[]): void {
  if (parentId === null) return;
  const parent = messages.find(({ id }) => id === parentId);
  const remedy = "Send an answer's id, or null for a first message";
  if (parent === undefined)
    throw fieldError("invalid_value", "parent_id", "names no message", remedy);
  if (parent.body.role === "user")
    throw fieldError("invalid_value", "parent_id", "is a user's message", remedy);
  if (parent.body.status !== "running") return;
  const message = `The answer before this message is still being written (run ${parent.runId}). Wait for its end, or cancel it.`;
  throw new FermataError("run_in_progress", message, { param: "parent_id" });
}

/** @param names null: all */
export function modeOf(names: readonly string[] | null, source: Target["tools"]): ToolMode {
  const offered = source?.tools() ?? [];
  const tools = names === null ? offered : names.map((name, index) => find(name, index, offered));
  return tools.length === 0 ? { kind: "none" } : { kind: "internal", tools };
}

/** A tool may be gone since a conversation's settings were stored. */
function stillOffered(
  names: string[] | null,
  source: Target["tools"],
  warn: Warn,
): string[] | null {
  if (names === null) return null;
  const offered = new Set(source?.tools().map(({ definition }) => definition.name));
  for (const name of names)
    if (!offered.has(name))
      warn(`tools=${name}`, "of a conversation's settings names no tool that is offered now");
  return names.filter((name) => offered.has(name));
}

function find(name: string, index: number, offered: readonly Tool[]): Tool {
  const tool = offered.find(({ definition }) => definition.name === name);
  if (tool !== undefined) return tool;
  const names = offered.map(({ definition }) => definition.name);
  const near = nearNames(name, names);
  const remedy =
    near.length > 0 ? `Did you mean ${near.join(", ")}` : "GET /api/tools lists the tools";
  throw fieldError("invalid_value", `tools[${index}]`, "names no tool that is offered now", remedy);
}

/** Messages are a tree: a branch is the way from the first one to `leafId`, both included; empty for null. */
export function pathTo<Node extends { id: string; parentId: string | null }>(
  messages: readonly Node[],
  leafId: string | null,
): Node[] {
  const byId = new Map(messages.map((message) => [message.id, message]));
  const path: Node[] = [];
  for (let node = byId.get(leafId ?? ""); node !== undefined; node = byId.get(node.parentId ?? ""))
    path.push(node);
  return path.reverse();
}

/** A branch as the messages that the model's template renders. */
function promptOf(
  branch: readonly { body: MessageBody }[],
  instructions: string | null,
): ChatMessage[] {
  const system: ChatMessage[] =
    instructions === null || instructions.trim() === ""
      ? []
      : [{ role: "system", content: instructions }];
  const said = branch.flatMap(({ body }): ChatMessage[] =>
    body.role === "user" ? [{ role: "user", content: userContent(body) }] : body.transcript,
  );
  return [...system, ...said];
}

/** Files come first, so the question stands just before the answer. */
function userContent({ message, files }: Pick<UserBody, "message" | "files">): string {
  const parts = files.map(({ name, text }) => `File ${JSON.stringify(name)}:\n${text}`);
  return [...parts, ...(message.trim() === "" ? [] : [message])].join("\n\n");
}

const titleLength = 60;

/** The first line of the question. */
export function titleOf({ message, files }: Pick<UserBody, "message" | "files">): string {
  const text = message.trim();
  const end = text.indexOf("\n");
  // A message may have a million characters.
  const first = text.slice(0, Math.min(end < 0 ? text.length : end, 4 * titleLength));
  const line = first.trim() || (files[0]?.name ?? "");
  const characters = [...line];
  if (characters.length <= titleLength) return line;
  return `${characters.slice(0, titleLength - 1).join("")}…`;
}
