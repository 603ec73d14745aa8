/** What programs that embed Fermata import. */

export type { ChatCounters, ToolLogger } from "./chat/types.ts";
export { Chat, type ChatOptions } from "./chat/chat.ts";
export type {
  ChatEvent,
  ChatGeneration,
  ChatMessage,
  ChatRequest,
  FinishReason,
  TemplateVariables,
  ToolCall,
  ToolDefinition,
  ToolOutput,
} from "./chat/types.ts";
export { ToolCallBuffer } from "./chat/answer/tool-call-buffer.ts";
export { Embedder, type EmbedderOptions, type Embeddings } from "./engine/embedder.ts";
export { Engine } from "./engine/engine.ts";
export type { LoadHooks } from "./engine/load.ts";
export type {
  CacheInfo,
  EngineOptions,
  EngineStats,
  EngineStep,
  EngineUsage,
  GenerateRequest,
  Generation,
  GenerationEvent,
  KvCacheType,
  ModelInfo,
  PauseTriggers,
  ResumeOptions,
  Sampling,
  SpecialToken,
} from "./engine/types.ts";
export { type ErrorCode, FermataError } from "./errors.ts";
export {
  type ApprovalRequest,
  Approvals,
  type Decision,
  type PendingApproval,
} from "./tools/approvals.ts";
export { CallAudit } from "./tools/call-audit.ts";
export type { ToolOversight } from "./tools/oversight.ts";
export type { StandardSchema } from "./tools/standard-schema.ts";
export { defineTool, type FunctionTool, Tool, type ToolBuilder } from "./tools/tool-builder.ts";
export { runToolLoop, type ToolLoopOptions } from "./tools/tool-loop.ts";
export { ToolParser } from "./tools/tool-parser.ts";
export { type CallingTurn, runToolRound, type ToolRoundOptions } from "./tools/tool-round.ts";
export type {
  ApprovalPolicy,
  ToolCallContext,
  ToolEvent,
  ToolOutcome,
  ToolProvider,
  ToolReport,
  ToolResult,
  ToolServerState,
} from "./tools/types.ts";
