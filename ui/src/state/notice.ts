/** Why the last thing that was asked for could not be done; shown until it is closed. */

import { messageOf } from "../api/request.ts";
import { openConversationId } from "./route.ts";
import { noteFailure } from "./session.ts";
import { Store } from "./store.ts";

export const notice = new Store<string | null>(null);

openConversationId.subscribe(() => notice.set(null));

export function showFailure(error: unknown): void {
  if (!noteFailure(error)) notice.set(messageOf(error));
}
