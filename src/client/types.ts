/** The wire of /api/conversations, as JSON. Type-only: the server writes it, clients read it. */

/** One event of a run's stream. */
export interface ChatMessageResponse {
  /** The next text of the answer; maybe empty. */
  message: string;
  /** Files and addresses that were not named before. */
  citations: string[];
  tool_calls: ToolCallResponse[];
}

export type ToolCallEventType = "call" | "result" | "delegation_call" | "delegation_result";

export interface ToolCallResponse {
  call_id: string;
  event_type: ToolCallEventType;
  tool_name: string;
  /** The whole result, in the last event of a call; empty before. */
  tool_response: string;
  tool_call_details: ToolCallDetails;
  /** The next part of the result. Parts are disjoint; the last event of a streamed result has the rest. */
  stream_part?: string;
  is_complete: boolean;
}

export interface ToolCallDetails {
  /** A delegation's task; the call in short. */
  summary?: string;
  /** JSON text, as the model wrote it. */
  arguments?: string;
  server?: string;
  /** The sub-agent that makes this call. Absent: the run itself. */
  agent?: string;
  /** The delegation within which this call is made. */
  parent_call_id?: string;
  /** Where in its speaker's text the call was made, in UTF-16 units. */
  text_offset?: number;
  /** The sub-agent that a delegation goes to. */
  delegate?: string;
  /** What a person decided, if one was asked. */
  approval?: "approved" | "denied";
  /** Why there is no whole result. */
  error?: string;
  milliseconds?: number;
  // oxlint-disable-next-line typescript/no-explicit-any
  [key: string]: any;
}

/** What `?details=1` adds. */
export interface ConversationEvent extends ChatMessageResponse {
  details?: Detail[];
}

export type Phase = "queued" | "prefill" | "decode" | "hold" | "tool" | "resume";
export type ToolCallProgress = "writing" | "approval" | "running" | "done" | "failed" | "denied";

export interface PhaseDetail {
  type: "phase";
  phase: Phase;
  /** Since the run began. */
  at_ms: number;
  call_id?: string;
  tokens?: number;
}

export interface EndDetail {
  type: "end";
  status: Exclude<RunStatus, "running">;
  error?: WireError;
  usage?: RunUsage;
}

/** Approve it with `content` that fits the schema; without a schema it is answered by yes or no. */
export interface Question {
  message: string;
  /** JSON Schema of an object without objects in it. */
  schema?: Record<string, unknown> | undefined;
  /** A page that the person should open. */
  url?: string | undefined;
}

export type Detail =
  | { type: "reasoning"; text: string; agent?: string; parent_call_id?: string }
  /** The first one of a call has an empty delta. */
  | {
      type: "arguments";
      call_id: string;
      tool_name: string;
      delta: string;
      agent?: string;
      parent_call_id?: string;
    }
  | {
      type: "state";
      call_id: string;
      state: Exclude<ToolCallProgress, "writing">;
      milliseconds?: number;
    }
  | { type: "progress"; call_id: string; message?: string; progress?: number; total?: number }
  | {
      type: "approval";
      call_id: string;
      tool_name: string;
      server: string;
      arguments: string;
      state: "asked" | "approved" | "denied";
      /** Of the question, where it is asked: the decision names it. */
      asking_id?: string;
      /** The tool's server has changed its definition: an earlier consent to it does not count. */
      has_changed?: true;
      /** The call runs, and its server asks. */
      question?: Question;
      /** The server ended while the call ran, and asks whether it runs again. */
      may_have_run?: true;
    }
  | PhaseDetail
  | EndDetail;

/** `length`: the answer was cut by a limit. */
export type RunStatus = "running" | "complete" | "length" | "cancelled" | "failed";

export interface WireError {
  message: string;
  code: string;
}

export interface RunUsage {
  prompt_tokens: number;
  completion_tokens: number;
  cached_tokens: number;
  prefilled_tokens: number;
}

export interface ConversationSummary {
  id: string;
  /** Empty until the first message gives it one. */
  title: string;
  /** Unix seconds, as all times. */
  created_at: number;
  updated_at: number;
  model: string;
  /** Of a run that goes on now. */
  run_id: string | null;
}

export interface ConversationList {
  conversations: ConversationSummary[];
  has_more: boolean;
}

export interface Conversation extends ConversationSummary {
  /** Names of the tools that are offered; null: all. */
  tools: string[] | null;
  instructions: string | null;
  response_format: unknown;
  /** The last message of the branch that is shown. */
  leaf_id: string | null;
  /** Of every branch, the oldest first. */
  messages: ConversationMessage[];
}

export interface ConversationMessage {
  id: string;
  parent_id: string | null;
  role: "user" | "assistant";
  message: string;
  /** What a user's message came with. */
  files: { name: string; characters: number }[];
  reasoning: string;
  citations: string[];
  /** One entry per call, as in its last event. */
  tool_calls: ToolCallResponse[];
  status: RunStatus;
  error: WireError | null;
  run_id: string | null;
  created_at: number;
  usage: RunUsage | null;
  timeline: PhaseDetail[];
}

export interface RunStarted {
  run_id: string;
  user_message_id: string;
  message_id: string;
  stream_url: string;
}

/** What the engine is at. */
export interface EngineState {
  model: { id: string; context_size: number };
  sequences: { running: number; waiting: number; held: number };
  kv_cells: { used: number; retained: number; free: number };
  /** Sequences that left their slots for memory, with its bytes. */
  kv_ram: { sequences: number; used: number; limit: number };
  /** Sequences in files, with their bytes. */
  kv_disk: { sequences: number; used: number; limit: number };
  /** Generated over the last two seconds. */
  tokens_per_second: number;
  /** Since the start, as what follows. */
  prefilled_tokens: number;
  new_tokens: number;
  /** 1 when nothing was computed twice. */
  re_prefill_ratio: number;
}

/** How a request was answered: `GET /api/traces/{id}`. No text of it, and names of tools only. */
export interface Trace {
  /** Of the answer that the client got; the request's where answers have no id. */
  id: string;
  request_id: string;
  endpoint: string;
  model: string;
  created_at: number;
  status: RunStatus;
  /** So far, while it goes on. */
  duration_ms: number;
  /** Of all its sequences. */
  rows: TraceRows;
  sequences: TraceSequence[];
  calls: TraceCall[];
  /** Spans and calls that are not kept, because there are too many. */
  dropped: number;
}

/** Tokens by what became of them. */
export interface TraceRows {
  prompt: number;
  /** Of the prompt: found in the KV cache. */
  cached: number;
  /** Tokens of tool results. */
  resumed: number;
  /** Rows of prompts and results that were computed. */
  prefilled: number;
  /** Of these: computed before, and lost. */
  recomputed: number;
  generated: number;
}

export interface TraceSequence {
  /** Whose it is; null: the answer's own. */
  agent: string | null;
  /** One after the other, without gaps. */
  spans: TraceSpan[];
  /** As of its last hold, or its end. */
  rows: TraceRows;
  /** Null while it goes on. */
  end: string | null;
}

export type TracePhase = "prepare" | "queued" | "prefill" | "decode" | "hold" | "resume";

/** Times are milliseconds since the request came, here and in `TraceCall`. */
export interface TraceSpan {
  phase: TracePhase;
  start_ms: number;
  /** Null: it goes on. */
  end_ms: number | null;
  /** `queued`: for what. Null: for the engine's next step. */
  waits_for?: string | null;
  /** `queued`: the trace of the same owner whose sequence it waits for. */
  behind?: string | null;
  /** `prefill`, `resume`: rows to compute. `hold`: tokens of the results that were computed meanwhile. */
  rows?: number;
  /** `prefill`, `resume`: positions that were in the KV cache, and where they came from. */
  reused?: number;
  source?: string;
}

export interface TraceCall {
  id: string;
  tool: string;
  server: string;
  /** Who called; null: the answer itself. */
  agent: string | null;
  start_ms: number;
  end_ms: number | null;
  /** Null while it runs. */
  outcome: string | null;
  /** Milliseconds that it waited for a person. */
  approval_ms: number;
}
