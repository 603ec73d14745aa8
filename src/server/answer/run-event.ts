import type { ChatEvent } from "../../chat/types.ts";
import type { ToolEvent } from "../../tools/types.ts";

/** What happens while an answer is made, by the model and by its tools. */
export type RunEvent = ChatEvent | ToolEvent;
