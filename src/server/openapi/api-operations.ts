/** What /openapi.json says of the page's routes: conversations with branches, the engine, traces, tools and approvals. */

import { pageQuery } from "../body/stored.ts";
import { decisionFields } from "../conversations/approvals.ts";
import { conversationFields, conversationPatchFields } from "../conversations/fields.ts";
import { runFields } from "../conversations/run-request.ts";
import * as apiAnswers from "./api-answers.ts";
import { string } from "./json-schema.ts";
import type { Operation } from "./operation.ts";

export const apiOperations: Readonly<Record<string, Operation>> = {
  "GET /api/conversations": {
    summary: "Branched conversations, the last changed first.",
    query: { limit: { type: "integer", minimum: 1, maximum: 100 }, before: string },
    answer: apiAnswers.conversations,
  },
  "POST /api/conversations": {
    summary: "Creates a branched conversation.",
    request: conversationFields,
    example: { title: "Harbour" },
    status: 201,
    answer: apiAnswers.conversation,
  },
  "GET /api/conversations/{id}": {
    summary: "A conversation with the messages of all branches.",
    answer: apiAnswers.conversation,
  },
  "PATCH /api/conversations/{id}": {
    summary: "Renames a conversation, changes its settings or the branch that is shown.",
    request: conversationPatchFields,
    answer: apiAnswers.conversation,
  },
  "DELETE /api/conversations/{id}": {
    summary: "Deletes a conversation and cancels its runs.",
    status: 204,
    answer: null,
  },
  "POST /api/conversations/{id}/runs": {
    summary: "Begins the answer to a message; it goes on without a viewer.",
    request: runFields,
    status: 202,
    answer: apiAnswers.runStarted,
  },
  "POST /api/conversations/{id}/runs/{run_id}/cancel": {
    summary: "Cancels a run.",
    status: 202,
    answer: apiAnswers.cancelledRun,
  },
  "GET /api/conversations/{id}/stream": {
    summary: "The events of a run, those after Last-Event-ID; 204 after the last.",
    query: { run_id: string, details: { type: "string", enum: ["0", "1"] }, token: string },
    streams: true,
    answer: null,
  },
  "GET /api/engine": {
    summary: "Sequences, cells and rates of the engine.",
    answer: apiAnswers.engine,
  },
  "GET /api/engine/stream": {
    summary: "The same as a stream, twice a second.",
    query: { token: string },
    streams: true,
    answer: null,
  },
  "GET /api/traces": {
    summary: "How the last answers of this key came about, the newest first.",
    query: { limit: pageQuery["limit"]! },
    answer: apiAnswers.traces,
  },
  "GET /api/traces/{id}": {
    summary: "How one answer came about: its phases, its calls, and the rows that were computed.",
    answer: apiAnswers.trace,
  },
  "POST /api/session": {
    summary: "Sets a cookie that stands for the API key.",
    answer: apiAnswers.session,
  },
  "DELETE /api/session": { summary: "Takes the cookie back.", status: 204, answer: null },
  "POST /api/stream-tokens": {
    summary: "A short-lived token for `?token=`, for clients that send no header.",
    answer: apiAnswers.streamToken,
  },
  "GET /api/tools": {
    summary: "The tools that this server runs, and the state of their servers.",
    answer: apiAnswers.tools,
  },
  "GET /api/approvals": {
    summary:
      "Calls of your requests that wait for a person's consent, or for the answer to a question of their server.",
    answer: apiAnswers.approvals,
  },
  "POST /api/approvals/{call_id}": {
    summary: "A person's answer to a call that waits for it.",
    request: decisionFields,
    answer: apiAnswers.approvalDecision,
  },
};
