/** The conversations of the side bar. */

import { deleteConversation, listConversations, updateConversation } from "../api/endpoints.ts";
import { messageOf } from "../api/request.ts";
import type { ConversationSummary } from "../api/wire.ts";
import { openConversation, openConversationId } from "./route.ts";
import { noteAnswer, noteFailure } from "./session.ts";
import { Store } from "./store.ts";
import { tellTabs } from "./tabs.ts";

export interface ConversationList {
  status: "loading" | "ready" | "failed";
  conversations: readonly ConversationSummary[];
  hasMore: boolean;
  error: string | null;
}

export const conversationList = new Store<ConversationList>({
  status: "loading",
  conversations: [],
  hasMore: false,
  error: null,
});

/** Reads the newest page; older conversations stay in the list. */
export async function refreshList(): Promise<void> {
  try {
    const { conversations, has_more: hasMore } = await listConversations(null);
    noteAnswer();
    conversationList.update((list) => ({
      status: "ready",
      ...withOlder(conversations, hasMore, list),
      error: null,
    }));
  } catch (error) {
    fail(error);
  }
}

export async function loadMore(): Promise<void> {
  const last = conversationList.get().conversations.at(-1);
  if (last === undefined) return;
  try {
    const { conversations, has_more: hasMore } = await listConversations(last.id);
    conversationList.update((list) => ({
      ...list,
      conversations: union(list.conversations, conversations),
      hasMore,
    }));
  } catch (error) {
    fail(error);
  }
}

type Known = Pick<ConversationList, "conversations" | "hasMore">;

/** The newest page with what was read behind it, if its end is found there: else there may be a gap between them. */
function withOlder(newest: readonly ConversationSummary[], hasMore: boolean, known: Known): Known {
  const last = newest.at(-1);
  const end = known.conversations.findIndex(
    ({ id, updated_at: at }) => id === last?.id && at === last.updated_at,
  );
  const older = hasMore && end >= 0 ? known.conversations.slice(end + 1) : [];
  const isOlder = older.length > 0;
  return {
    conversations: union(newest, older),
    hasMore: isOlder ? known.hasMore : hasMore,
  };
}

/** One that was changed meanwhile is in both, and belongs to the first. */
function union(
  first: readonly ConversationSummary[],
  second: readonly ConversationSummary[],
): ConversationSummary[] {
  const ids = new Set(first.map(({ id }) => id));
  return [...first, ...second.filter(({ id }) => !ids.has(id))];
}

export async function rename(id: string, title: string): Promise<void> {
  await updateConversation(id, { title });
  conversationList.update((list) => ({
    ...list,
    conversations: list.conversations.map((each) => (each.id === id ? { ...each, title } : each)),
  }));
  tellTabs(id);
}

export async function remove(id: string): Promise<void> {
  await deleteConversation(id);
  conversationList.update((list) => ({
    ...list,
    conversations: list.conversations.filter((each) => each.id !== id),
  }));
  if (openConversationId.get() === id) openConversation(null, "replace");
  tellTabs(id);
}

function fail(error: unknown): void {
  const known = noteFailure(error);
  conversationList.update((list) => ({
    ...list,
    status: list.conversations.length > 0 ? "ready" : "failed",
    error: known ? null : messageOf(error),
  }));
}
