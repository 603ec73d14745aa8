import type { ConversationService } from "../../conversations/conversation-service.ts";
import type { RouteContext } from "../chat-completions.ts";

export interface ConversationsContext extends RouteContext {
  conversations: ConversationService;
}
