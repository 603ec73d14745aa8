/** Types of /api, except conversations. */

import type { Conversation as WireConversation } from "../../../src/client/types.ts";

export type {
  ConversationEvent,
  ConversationList,
  ConversationMessage as Message,
  ConversationSummary,
  EngineState,
  PhaseDetail,
  RunStarted,
  RunUsage,
  Trace,
  TraceCall,
  TraceSequence,
  TraceSpan,
} from "../../../src/client/types.ts";

/** This page sends schemas; other clients may have set another format. */
export interface ResponseFormat {
  type: string;
  json_schema?: { name?: string; schema?: unknown; strict?: boolean };
}

export type Conversation = Omit<WireConversation, "response_format"> & {
  response_format: ResponseFormat | null;
};

export interface ToolInfo {
  name: string;
  description: string;
  read_only: boolean;
  approval: "never" | "always";
}

export interface ToolServer {
  name: string;
  transport: string;
  state: "starting" | "ready" | "restarting" | "failed";
  error: string | null;
  tools: ToolInfo[];
}

export interface Toolbox {
  servers: ToolServer[];
  agents: { name: string; description: string }[];
  models: { id: string }[];
}

export interface TextFile {
  name: string;
  text: string;
}
