/** Actions of a person on a conversation. Each throws ApiError, which its button shows, unless it says otherwise. */

import { sendDecision } from "../../../src/client/send-decision.ts";
import {
  createConversation,
  type Decision,
  decideApproval,
  type RunOptions,
  startRun,
} from "../api/endpoints.ts";
import { messageOf } from "../api/request.ts";
import type { Message } from "../api/wire.ts";
import { branchesOf, newestLeaf, pathTo } from "../conversation/branches.ts";
import type { Call } from "../turn/turn.ts";
import { announce, awaitedAnswers } from "./announcer.ts";
import { adopt, changed, openIdOf, openState, show } from "./conversation.ts";
import { adoptDraft, changeDraft, type Draft, draftOf, takeFromDraft } from "./draft.ts";
import { openConversation } from "./route.ts";
import { noteFailure } from "./session.ts";
import { changeConversation, changesSent, newSettings } from "./settings.ts";

const longestTitle = 60;

/** Sends the draft behind the last message that is shown, in a new conversation if none is open. Never rejects. */
export async function sendMessage(): Promise<void> {
  const { conversation } = openState.get() ?? {};
  let id = openIdOf(openState.get());
  const sent = draftOf(id);
  if (sent.isSending) return;
  const { text, files } = sent;
  const last =
    conversation && pathTo(branchesOf(conversation.messages), conversation.leaf_id).at(-1);
  const options = {
    ...(files.length > 0 && { files: [...files] }),
    ...(last && { parent_id: last.id }),
  };
  changeDraft(id, () => ({ isSending: true, problem: null }));
  try {
    id ??= await begin(sent);
    await run(id, { message: text }, options, "Message sent.");
    takeFromDraft(id, sent);
    await changed(id);
  } catch (error) {
    changeDraft(id, () => ({ problem: messageOf(error) }));
  } finally {
    changeDraft(id, () => ({ isSending: false }));
  }
}

async function begin({ text, files }: Draft): Promise<string> {
  const line = text.trim().split("\n", 1)[0] || (files[0]?.name ?? "");
  const title = line.length > longestTitle ? `${line.slice(0, longestTitle - 1).trimEnd()}…` : line;
  const conversation = await guarded(createConversation({ ...newSettings.get(), title }));
  newSettings.set({});
  adoptDraft(conversation.id);
  adopt(conversation);
  openConversation(conversation.id);
  return conversation.id;
}

/** Asks the same question again; the new answer is a sibling branch. */
export async function retry(messageId: string): Promise<void> {
  const id = openId();
  await run(id, { retry: messageId }, {}, "Trying again.");
  await changed(id);
}

/** Sends the changed message, with the files that it has, as a sibling branch. */
export async function edit(message: Message, text: string): Promise<void> {
  const id = openId();
  const options = {
    parent_id: message.parent_id,
    ...(message.files.length > 0 && { files_of: message.id }),
  };
  await run(id, { message: text }, options, "Edited message sent.");
  await changed(id);
}

/** Resolves when the run was accepted. */
async function run(
  id: string,
  what: Parameters<typeof startRun>[1],
  options: RunOptions,
  told: string,
): Promise<void> {
  await changesSent(id);
  const { message_id: messageId } = await guarded(startRun(id, what, options));
  awaitedAnswers.add(messageId);
  announce(told);
}

/** Shows the branch that goes through this message. */
export async function switchBranch(messageId: string): Promise<void> {
  const { conversation } = openState.get() ?? {};
  if (!conversation) return;
  const leafId = newestLeaf(branchesOf(conversation.messages), messageId);
  await changeConversation(conversation.id, { leaf_id: leafId });
}

const said = { approve: "Approved.", deny: "Denied.", cancel: "Not answered." };

export async function decide(
  { call_id: callId, asking_id: askingId }: Call,
  answer: Decision,
): Promise<void> {
  const named = askingId === null ? answer : { ...answer, asking_id: askingId };
  const end = await guarded(sendDecision(askingId, () => decideApproval(callId, named)));
  announce(end === "sent" ? said[answer.decision] : "It has a decision.");
}

export function newConversation(): void {
  openConversation(null);
  void show(null);
}

function openId(): string {
  const id = openIdOf(openState.get());
  if (id === null) throw new Error("No conversation is open.");
  return id;
}

async function guarded<T>(work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (error) {
    noteFailure(error);
    throw error;
  }
}
