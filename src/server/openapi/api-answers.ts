/** What the endpoints of /api answer with, beside those of `answers.ts`. */

import { choice, answer, modelState, real, whole } from "./answers.ts";
import { boolean, list, nullable, object, string } from "./json-schema.ts";
import type { Schema } from "../body/field.ts";

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

export const conversation = answer({
  ...summary,
  tools: nullable(list(string)),
  instructions: nullable(string),
  // As it was sent.
  response_format: {},
  leaf_id: nullable(string),
  messages: list(message),
});
export const conversations = answer({ conversations: list(answer(summary)), has_more: boolean });
export const runStarted = answer({
  run_id: string,
  user_message_id: string,
  message_id: string,
  stream_url: string,
});
export const cancelledRun = answer({ run_id: string });
export const engine = answer({
  model: answer({ id: string, context_size: whole }),
  sequences: answer({ running: whole, waiting: whole, held: whole }),
  kv_cells: answer({ used: whole, retained: whole, free: whole }),
  kv_ram: answer({ sequences: whole, used: whole, limit: whole }),
  kv_disk: answer({ sequences: whole, used: whole, limit: whole }),
  tokens_per_second: real,
  prefilled_tokens: whole,
  new_tokens: whole,
  re_prefill_ratio: real,
});
const traceRows = answer({
  prompt: whole,
  cached: whole,
  resumed: whole,
  prefilled: whole,
  recomputed: whole,
  generated: whole,
});
export const trace = answer({
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
export const traces = answer({ traces: list(trace) });
export const session = answer({ expires_at: whole });
export const streamToken = answer({ token: string, expires_at: whole });

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
export const tools = answer({
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
});
const pendingApproval = answer(
  {
    call_id: string,
    server: string,
    tool_name: string,
    arguments: string,
    asked_at: whole,
  },
  { question: answer({ message: string }, { schema: object, url: string }), may_have_run: boolean },
);
export const approvals = answer({ approvals: list(pendingApproval) });
export const approvalDecision = answer({
  call_id: string,
  decision: choice("approve", "deny", "cancel"),
});

export const models = answer({
  models: list(
    answer({
      id: string,
      is_default: boolean,
      state: modelState,
      progress: real,
      size: whole,
      architecture: string,
      quantization: string,
      context_length: nullable(whole),
      uses: whole,
      leaves_at: nullable(string),
      is_pinned: boolean,
    }),
  ),
});
export const done = answer({ success: boolean });
