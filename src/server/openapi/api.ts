/** What /openapi.json says of the page's routes: conversations with branches, the engine, traces, tools and approvals. */

import type { Schema } from "../body/field.ts";
import { pageQuery } from "../body/stored.ts";
import { decisionFields } from "../conversations/approvals.ts";
import { conversationFields, conversationPatchFields } from "../conversations/fields.ts";
import { runFields } from "../conversations/run-request.ts";
import {
  answer,
  boolean,
  choice,
  list,
  nullable,
  object,
  real,
  string,
  whole,
} from "../body/shapes.ts";
import type { Operation } from "./operation.ts";

const summary: Record<string, Schema> = {
  id: string,
  title: string,
  created_at: whole,
  updated_at: whole,
  model: string,
  run_id: nullable(string),
};

const toolCall = answer(
  {
    call_id: string,
    event_type: choice("call", "result", "delegation_call", "delegation_result"),
    tool_name: string,
    tool_response: string,
    tool_call_details: object,
    is_complete: boolean,
  },
  { stream_part: string },
);

const message = answer({
  id: string,
  parent_id: nullable(string),
  role: choice("user", "assistant"),
  message: string,
  files: list(answer({ name: string, characters: whole })),
  reasoning: string,
  citations: list(string),
  tool_calls: list(toolCall),
  status: choice("running", "complete", "length", "cancelled", "failed"),
  error: nullable(answer({ message: string, code: string })),
  run_id: nullable(string),
  created_at: whole,
  usage: nullable(
    answer({
      prompt_tokens: whole,
      completion_tokens: whole,
      cached_tokens: whole,
      prefilled_tokens: whole,
    }),
  ),
  timeline: list(
    answer(
      {
        type: choice("phase"),
        phase: choice("queued", "prefill", "decode", "hold", "tool", "resume"),
        at_ms: whole,
      },
      { call_id: string, tokens: whole },
    ),
  ),
});

const conversation = answer({
  ...summary,
  tools: nullable(list(string)),
  instructions: nullable(string),
  // As it was sent.
  response_format: {},
  leaf_id: nullable(string),
  messages: list(message),
});

const traceRows = answer({
  prompt: whole,
  cached: whole,
  resumed: whole,
  prefilled: whole,
  recomputed: whole,
  generated: whole,
});

const trace = answer({
  id: string,
  request_id: string,
  endpoint: string,
  model: string,
  created_at: whole,
  status: choice("running", "complete", "length", "cancelled", "failed"),
  duration_ms: real,
  rows: traceRows,
  sequences: list(
    answer({
      agent: nullable(string),
      spans: list(
        answer(
          {
            phase: choice("prepare", "queued", "prefill", "decode", "hold", "resume"),
            start_ms: real,
            end_ms: nullable(real),
          },
          {
            waits_for: nullable(string),
            behind: nullable(string),
            rows: whole,
            reused: whole,
            source: string,
          },
        ),
      ),
      rows: traceRows,
      end: nullable(string),
    }),
  ),
  calls: list(
    answer({
      id: string,
      tool: string,
      server: string,
      agent: nullable(string),
      start_ms: real,
      end_ms: nullable(real),
      outcome: nullable(string),
      approval_ms: real,
    }),
  ),
  dropped: whole,
});

const approvalPolicy = choice("never", "always");

const runnableTool = answer({
  name: string,
  description: nullable(string),
  read_only: boolean,
  approval: approvalPolicy,
});

const toolServer = answer({
  name: string,
  transport: choice("stdio", "http", "sse"),
  state: choice("starting", "ready", "restarting", "failed"),
  error: nullable(string),
  prompt_tokens: nullable(whole),
  tools: list(runnableTool),
});

const pendingApproval = answer(
  {
    call_id: string,
    asking_id: string,
    server: string,
    tool_name: string,
    arguments: string,
    asked_at: whole,
  },
  { question: answer({ message: string }, { schema: object, url: string }), may_have_run: boolean },
);

export const apiOperations: Readonly<Record<string, Operation>> = {
  "GET /api/conversations": {
    summary: "Branched conversations, the last changed first.",
    query: { limit: { type: "integer", minimum: 1, maximum: 100 }, before: string },
    answer: answer({ conversations: list(answer(summary)), has_more: boolean }),
  },
  "POST /api/conversations": {
    summary: "Creates a branched conversation.",
    request: conversationFields,
    example: { title: "Harbour" },
    status: 201,
    answer: conversation,
  },
  "GET /api/conversations/{id}": {
    summary: "A conversation with the messages of all branches.",
    answer: conversation,
  },
  "PATCH /api/conversations/{id}": {
    summary: "Renames a conversation, changes its settings or the branch that is shown.",
    request: conversationPatchFields,
    answer: conversation,
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
    answer: answer({
      run_id: string,
      user_message_id: string,
      message_id: string,
      stream_url: string,
    }),
  },
  "POST /api/conversations/{id}/runs/{run_id}/cancel": {
    summary: "Cancels a run.",
    status: 202,
    answer: answer({ run_id: string }),
  },
  "GET /api/conversations/{id}/stream": {
    summary: "The events of a run, those after Last-Event-ID; 204 after the last.",
    query: { run_id: string, details: { type: "string", enum: ["0", "1"] }, token: string },
    streams: true,
    answer: null,
  },
  "GET /api/engine": {
    summary: "Sequences, cells and rates of the engine.",
    answer: answer({
      model: answer({ id: string, context_size: whole }),
      sequences: answer({ running: whole, waiting: whole, held: whole }),
      kv_cells: answer({ used: whole, retained: whole, free: whole }),
      kv_ram: answer({ sequences: whole, used: whole, limit: whole }),
      kv_disk: answer({ sequences: whole, used: whole, limit: whole }),
      tokens_per_second: real,
      prefilled_tokens: whole,
      new_tokens: whole,
      re_prefill_ratio: real,
    }),
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
    answer: answer({ traces: list(trace) }),
  },
  "GET /api/traces/{id}": {
    summary: "How one answer came about: its phases, its calls, and the rows that were computed.",
    answer: trace,
  },
  "POST /api/session": {
    summary: "Sets a cookie that stands for the API key.",
    answer: answer({ expires_at: whole }),
  },
  "DELETE /api/session": { summary: "Takes the cookie back.", status: 204, answer: null },
  "POST /api/stream-tokens": {
    summary: "A short-lived token for `?token=`, for clients that send no header.",
    answer: answer({ token: string, expires_at: whole }),
  },
  "GET /api/tools": {
    summary: "The tools that this server runs, and the state of their servers.",
    answer: answer({
      servers: list(toolServer),
      prompt_tokens: nullable(whole),
      context_size: nullable(whole),
      agents: list(answer({ name: string, description: string })),
      models: list(
        answer({
          id: string,
          tool_section: nullable(choice("template", "generic")),
          tool_format: nullable(string),
        }),
      ),
    }),
  },
  "GET /api/approvals": {
    summary:
      "Calls of your requests that wait for a person's consent, or for the answer to a question of their server.",
    answer: answer({ approvals: list(pendingApproval) }),
  },
  "POST /api/approvals/{call_id}": {
    summary: "A person's answer to a call that waits for it.",
    request: decisionFields,
    answer: answer({
      call_id: string,
      decision: choice("approve", "deny", "cancel"),
    }),
  },
};
