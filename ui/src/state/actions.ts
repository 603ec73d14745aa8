/** Actions of a person on a conversation. Each throws ApiError, which its button shows. */

import {
  type ConversationSettings,
  createConversation,
  type Decision,
  decideApproval,
  type RunOptions,
  startRun,
  updateConversation,
} from "../api/endpoints.ts";
import { branchesOf, newestLeaf } from "../conversation/branches.ts";
import { announce, awaitedAnswers } from "./announcer.ts";
import { adopt, changed, openState, show } from "./conversation.ts";
import { changeDraft, draft, emptyDraft } from "./draft.ts";
import { openConversation } from "./route.ts";
import { noteFailure } from "./session.ts";

const longestTitle = 60;

/** Sends the draft with this text, in a new conversation if none is open. */
export async function sendMessage(text: string): Promise<void> {
  const { files, responseFormat, model, tools } = draft.get();
  const id =
    openState.get()?.id ??
    (await begin(text, { ...(model && { model }), ...(tools && { tools: [...tools] }) }));
  await run(
    id,
    { message: text },
    {
      ...(files.length > 0 && { files: [...files] }),
      ...(responseFormat && { response_format: responseFormat }),
    },
    "Message sent.",
  );
  changeDraft({ ...emptyDraft, responseFormat });
}

async function begin(text: string, settings: ConversationSettings): Promise<string> {
  const line = text.trim().split("\n", 1)[0] || (draft.get().files[0]?.name ?? "");
  const title = line.length > longestTitle ? `${line.slice(0, longestTitle - 1).trimEnd()}…` : line;
  const conversation = await guarded(createConversation({ ...settings, title }));
  adopt(conversation);
  openConversation(conversation.id);
  return conversation.id;
}

/** Asks the same question again; the new answer is a sibling branch. */
export async function retry(messageId: string): Promise<void> {
  const { responseFormat } = draft.get();
  const options = responseFormat === null ? {} : { response_format: responseFormat };
  await run(openId(), { retry: messageId }, options, "Trying again.");
}

/** Sends the changed message as a sibling branch. */
export async function edit(parentId: string | null, text: string): Promise<void> {
  await run(openId(), { message: text }, { parent_id: parentId }, "Edited message sent.");
}

async function run(
  id: string,
  what: Parameters<typeof startRun>[1],
  options: RunOptions,
  told: string,
): Promise<void> {
  const { message_id: messageId } = await guarded(startRun(id, what, options));
  awaitedAnswers.add(messageId);
  announce(told);
  await changed();
}

/** Shows the branch that goes through this message. */
export async function switchBranch(messageId: string): Promise<void> {
  const { conversation } = openState.get() ?? {};
  if (!conversation) return;
  const leafId = newestLeaf(branchesOf(conversation.messages), messageId);
  openState.update(
    (state) => state && { ...state, conversation: { ...conversation, leaf_id: leafId } },
  );
  await guarded(updateConversation(conversation.id, { leaf_id: leafId }));
}

export async function changeSettings(settings: ConversationSettings): Promise<void> {
  const id = openState.get()?.id;
  if (id === undefined) {
    const { model, tools } = settings;
    changeDraft({ ...(model !== undefined && { model }), ...(tools !== undefined && { tools }) });
    return;
  }
  await guarded(updateConversation(id, settings));
  await changed();
}

const said = { approve: "Approved.", deny: "Denied.", cancel: "Not answered." };

export async function decide(callId: string, answer: Decision): Promise<void> {
  await guarded(decideApproval(callId, answer));
  announce(said[answer.decision]);
}

export function newConversation(): void {
  openConversation(null);
  void show(null);
}

function openId(): string {
  const id = openState.get()?.id;
  if (id === undefined) throw new Error("No conversation is open.");
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
