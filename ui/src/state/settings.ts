/** Settings of the open conversation, or of the one that begins with the next message. */

import {
  type ConversationChange,
  type ConversationSettings,
  updateConversation,
} from "../api/endpoints.ts";
import { assume, changed, openConversationOf, openState } from "./conversation.ts";
import { noteFailure } from "./session.ts";
import { Store, useSelected, useStore } from "./store.ts";

/** What is left out is the server's default. */
export const newSettings = new Store<ConversationSettings>({});

export function useSettings(): ConversationSettings {
  const conversation = useSelected(openState, openConversationOf);
  const ofNew = useStore(newSettings);
  return conversation ?? ofNew;
}

export async function changeSettings(settings: ConversationSettings): Promise<void> {
  const id = openState.get()?.id;
  if (id === undefined) newSettings.update((before) => ({ ...before, ...settings }));
  else await changeConversation(id, settings);
}

/** The last change of each conversation that is on its way. */
const sending = new Map<string, Promise<void>>();

/**
 * Shown at once and sent in order, so that quick changes do not undo each other.
 * @throws ApiError; what the server has is then shown
 */
export async function changeConversation(id: string, change: ConversationChange): Promise<void> {
  const before = changesSent(id);
  assume(id, change);
  const own = before.then(async () => {
    await updateConversation(id, change);
  });
  sending.set(id, own);
  try {
    await own;
  } catch (error) {
    noteFailure(error);
    throw error;
  } finally {
    if (sending.get(id) === own) {
      sending.delete(id);
      assume(id, null);
      await changed(id);
    }
  }
}

/** Resolves when no change is on its way any more. */
export async function changesSent(id: string): Promise<void> {
  await sending.get(id)?.catch(() => {});
}
