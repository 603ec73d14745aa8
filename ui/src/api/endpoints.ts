/** The endpoints that the page uses, one function each. */

import { request } from "./request.ts";
import type {
  Conversation,
  ConversationList,
  ResponseFormat,
  RunStarted,
  TextFile,
  Toolbox,
  Trace,
} from "./wire.ts";

const conversations = "/api/conversations";

export interface ConversationSettings {
  model?: string;
  /** Null: all. */
  tools?: string[] | null;
  response_format?: ResponseFormat | null;
}

export interface ConversationChange extends ConversationSettings {
  title?: string;
  /** The end of the branch that is shown. */
  leaf_id?: string;
}

export interface RunOptions {
  files?: TextFile[];
  /** In place of files: the message that has them. */
  files_of?: string;
  /** The message to branch from; null starts anew. */
  parent_id?: string | null;
}

function pathOf(id: string): string {
  return `${conversations}/${encodeURIComponent(id)}`;
}

export function listConversations(before: string | null): Promise<ConversationList> {
  const query = before === null ? "" : `&before=${encodeURIComponent(before)}`;
  return request(`${conversations}?limit=100${query}`);
}

export function createConversation(
  settings: ConversationSettings & { title: string },
): Promise<Conversation> {
  return request(conversations, { method: "POST", body: settings });
}

export function getConversation(id: string): Promise<Conversation> {
  return request(pathOf(id));
}

export function updateConversation(id: string, change: ConversationChange): Promise<Conversation> {
  return request(pathOf(id), { method: "PATCH", body: change });
}

export function deleteConversation(id: string): Promise<void> {
  return request(pathOf(id), { method: "DELETE" });
}

export function startRun(
  id: string,
  what: { message: string } | { retry: string },
  options: RunOptions,
): Promise<RunStarted> {
  return request(`${pathOf(id)}/runs`, { method: "POST", body: { ...what, ...options } });
}

export function cancelRun(id: string, runId: string): Promise<void> {
  return request(`${pathOf(id)}/runs/${encodeURIComponent(runId)}/cancel`, { method: "POST" });
}

export function streamPath(id: string, runId: string): string {
  return `${pathOf(id)}/stream?run_id=${encodeURIComponent(runId)}&details=1`;
}

export interface Decision {
  decision: "approve" | "deny" | "cancel";
  /** Of the question that the user saw. */
  asking_id?: string;
  /** The answer to a question. */
  content?: Record<string, unknown>;
}

export function decideApproval(callId: string, body: Decision): Promise<void> {
  const path = `/api/approvals/${encodeURIComponent(callId)}`;
  return request(path, { method: "POST", body });
}

export function getTools(): Promise<Toolbox> {
  return request("/api/tools");
}

/** The newest first. */
export function getTraces(): Promise<{ traces: Trace[] }> {
  return request("/api/traces");
}

/** Exchanges the key for a cookie that scripts cannot read. */
export function openSession(key: string): Promise<void> {
  const headers = { authorization: `Bearer ${key}` };
  return request("/api/session", { method: "POST", headers });
}
