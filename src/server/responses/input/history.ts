/** The history before a request's input: a chain of responses or a conversation, and referenced items. */

import { needStore } from "../../body/stored.ts";
import { FermataError } from "../../../errors.ts";
import type { OpenStore } from "../../../store/types.ts";
import type { ClientHistory } from "../../http/history-gaps.ts";
import { fieldError } from "../../body/field.ts";
import { finishInTurns, type Parts } from "../../../parts.ts";
import { callsOfItems, isClientCall, isClientOutput } from "../calls/client-calls.ts";
import type { EventLog } from "../events/log.ts";
import { done, toolCallCompleted } from "../events/item.ts";
import type { Item, UnnumberedEvent } from "../types.ts";

export interface HistoryRequest {
  input: readonly Item[];
  previousResponseId: string | null;
  conversationId: string | null;
}

export interface History {
  /** The items before the input. */
  items: Item[];
  /** The request's input, with references resolved. */
  input: Item[];
}

/**
 * @param recalled what the request follows; default: what the store has
 * @throws FermataError of status 4xx: a reference leads to nothing
 */
export async function loadHistory(
  request: HistoryRequest,
  owner: string,
  store: OpenStore | null,
  recalled?: readonly Item[],
): Promise<History> {
  const items = recalled ? [...recalled] : await itemsBefore(request, owner, store);
  const input = await resolveReferences(request.input, items, { owner, store });
  await finishInTurns(checkAnswers(items, input));
  return { items, input };
}

async function itemsBefore(
  { previousResponseId, conversationId }: HistoryRequest,
  owner: string,
  store: OpenStore | null,
): Promise<Item[]> {
  if (previousResponseId !== null) {
    const found = await needStore(store, "previous_response_id").responses.items(
      owner,
      previousResponseId,
    );
    if (found === null) {
      const message = `Previous response with id "${previousResponseId.slice(0, 100)}" not found. Send the whole history as input.`;
      throw new FermataError("previous_response_not_found", message, {
        param: "previous_response_id",
      });
    }
    return [...found.history, ...found.input, ...found.output] as Item[];
  }
  if (conversationId !== null) {
    const found = await needStore(store, "conversation").conversations.items(owner, conversationId);
    if (found === null)
      throw new FermataError("not_found", "There is no such conversation.", {
        param: "conversation",
      });
    return found as Item[];
  }
  return [];
}

/** The calls in its history. */
export function clientHistory(
  promptCacheKey: string | null,
  owner: string,
  { items, input }: History,
): ClientHistory {
  const calls = callsOfItems([...items, ...input]);
  return { owner, conversationKey: promptCacheKey, calls };
}

/** Reads each item once, even if several references name it. */
async function resolveReferences(
  input: readonly Item[],
  before: readonly Item[],
  { owner, store }: { owner: string; store: OpenStore | null },
): Promise<Item[]> {
  if (input.every(({ type }) => type !== "item_reference")) return [...input];
  const known = new Map<string, Item>(before.map((item) => [item.id, item]));
  const resolved: Item[] = [];
  for (const [index, item] of input.entries()) {
    if (item.type !== "item_reference") {
      resolved.push(item);
      continue;
    }
    const found =
      known.get(item.id) ?? ((await store?.responses.item(owner, item.id)) as Item | undefined);
    if (!found) {
      const field = `input[${index}].id`;
      throw fieldError("invalid_value", field, "refers to no stored item", "Send the item itself");
    }
    known.set(item.id, found);
    resolved.push(found);
  }
  return resolved;
}

/**
 * A result must answer a call that the model can see, or the model would repeat the call. Ids of other servers are
 * accepted, because a client may bring its history from elsewhere.
 */
function* checkAnswers(before: readonly Item[], input: readonly Item[]): Parts<void> {
  const calls = new Set<unknown>();
  const requests = new Set<unknown>();
  const learn = (item: Item): void => {
    if (isClientCall(item)) calls.add(item.call_id);
    else if (item.type === "mcp_approval_request") requests.add(item.id);
  };
  for (const item of before) {
    learn(item);
    yield;
  }
  for (const [index, item] of input.entries()) {
    learn(item);
    yield;
    const field = `input[${index}]`;
    if (isClientOutput(item) && !calls.has(item["call_id"])) throw strayOutput(item, field);
    const request = item["approval_request_id"];
    if (item.type === "mcp_approval_response" && !requests.has(request)) {
      const problem = "names no mcp_approval_request of the conversation";
      const remedy = "Send previous_response_id, or the request before its response";
      throw fieldError("invalid_value", `${field}.approval_request_id`, problem, remedy);
    }
  }
}

function strayOutput(item: Item, field: string): FermataError {
  const callId = String(item["call_id"]).slice(0, 100);
  const isCustom = item.type === "custom_tool_call_output";
  const call = isCustom
    ? { type: "custom_tool_call", call_id: callId, name: "…", input: "…" }
    : { type: "function_call", call_id: callId, name: "…", arguments: "…" };
  const output = { type: item.type, call_id: callId, output: "…" };
  return fieldError(
    "invalid_value",
    `${field}.call_id`,
    `is "${callId}", and no ${call.type} before it has this call_id`,
    `Send the call before its output, as in ${JSON.stringify([call, output])}, or name the response that made the call as previous_response_id`,
  );
}

interface EarlierContext {
  previous: string | null;
  owner: string;
  store: OpenStore | null;
  log: EventLog;
}

/** A new turn closes the calls that the previous response left open, in the store and the log. @returns the events for clients that want them */
export async function closeEarlierCalls(
  items: readonly Item[],
  { previous, owner, store, log }: EarlierContext,
): Promise<UnnumberedEvent[]> {
  if (previous === null) return [];
  const events: UnnumberedEvent[] = [];
  for (const item of items) {
    if (!isClientCall(item) || item.status !== "in_progress") continue;
    item.status = "completed";
    await store?.responses.updateItem(owner, { ...item });
    const callId = item.call_id;
    log.closedEarlier(previous, callId);
    const response = { id: previous };
    events.push({ type: toolCallCompleted, response, call_id: callId });
    events.push({ type: done, response, output_index: 0, item });
  }
  return events;
}
