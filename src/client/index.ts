/** `fermata/client`: streams of a Fermata server, read and added up. For browsers and Node alike. */

export {
  applyEvent,
  callsWithin,
  type ConversationState,
  emptyState,
  stateOfMessage,
  type ToolCallState,
} from "./conversation-state.ts";
export {
  fieldValue,
  questionContent,
  questionFields,
  type QuestionField,
} from "./question-fields.ts";
export {
  type ReadEvent,
  readConversation,
  type ReadOptions,
  StreamError,
} from "./read-conversation.ts";
export {
  accumulateResponse,
  type ResponseEvent,
  type ResponseItemState,
  type ResponseState,
  textOfResponse,
} from "./response-state.ts";
export { sendDecision } from "./send-decision.ts";
export { type SseEvent, SseParser } from "./sse-parser.ts";
export type * from "./types.ts";
