/** What the stream of a response told before its process ended, for the process that goes on with it. */

import { accumulateResponse, type ResponseState } from "../../../client/response-state.ts";
import { ToldRound } from "../../answer/written-round.ts";
import { type ClientCallItem, isClientCall } from "../calls/client-calls.ts";
import { decodeText } from "../input/encoded.ts";
import { added } from "./item.ts";
import type { Item, McpCallItem, OutputItem, WireEvent } from "../types.ts";

export interface ToldOutput {
  items: readonly OutputItem[];
  /** The number of the next event. */
  next: number;
  /** The items from here on are of the round that the model was writing. */
  roundAt: number;
  /** Words of that round were told. */
  isBegun: boolean;
  /** The call has all its arguments. */
  isWhole(call: ClientCallItem | McpCallItem): boolean;
}

/**
 * @param next the number of the first event behind what a hold keeps @param isOpening the model had not begun
 * @param known what the store has of the output: events of a response that is not in the background are not kept
 */
export function toldOutput(
  told: readonly WireEvent[],
  known: readonly OutputItem[],
  { id, next, isOpening }: { id: string; next: number; isOpening: boolean },
): ToldOutput {
  // Some may be of the response before.
  const own = told.filter((event) => {
    const response = event["response"] as { id?: string } | undefined;
    return (response?.id ?? id) === id;
  });
  const state = own.reduce<ResponseState | null>(accumulateResponse, null);
  const items = (state?.output as readonly OutputItem[] | undefined) ?? known;
  const isBegin = ({ type, sequence_number: at }: WireEvent): boolean =>
    !isOpening && at >= next && type === added;
  const begin = own.find(isBegin);
  const whole = new Set(own.map(({ type, item_id: of }) => (type.endsWith(".done") ? of : null)));
  return {
    items,
    next: Math.max(next, (told.at(-1)?.sequence_number ?? -1) + 1),
    roundAt: (begin?.["output_index"] as number | undefined) ?? items.length,
    isBegun: begin !== undefined,
    isWhole: ({ id: call }) => state === null || whole.has(call),
  };
}

/** The round that the model was writing, and the ids of its calls as the model's; those of servers have none on the wire. */
export function toldRound({ items, roundAt, isWhole }: ToldOutput): {
  round: ToldRound;
  callIds: string[];
} {
  const said = items.slice(roundAt);
  const calls = said.flatMap((item) => {
    if (item.type === "mcp_approval_request") return [{ id: item.id, told: Infinity }];
    if (!isClientCall(item) && item.type !== "mcp_call") return [];
    const id = isClientCall(item) ? item.call_id : item.id;
    if (isWhole(item)) return [{ id, told: Infinity }];
    // The input of a custom tool is not what the model writes: `ClientCallEvents` knows what of it was told.
    return [{ id, told: item.type === "custom_tool_call" ? 0 : item.arguments.length }];
  });
  const parts = said.flatMap((item) => (item.type === "message" ? item.content : []));
  const summaries = said.map((item) =>
    item.type === "compaction" ? decodeText("summary", item.encrypted_content) : "",
  );
  const thoughts = said.flatMap((item) => (item.type === "reasoning" ? item.content : []));
  const round = new ToldRound({
    content: [...parts.map(({ text }) => text), ...summaries].join(""),
    logprobs: parts.reduce((sum, { logprobs }) => sum + logprobs.length, 0),
    reasoning: thoughts.map(({ text }) => text).join(""),
    calls: calls.map(({ told }) => told),
  });
  return { round, callIds: calls.map(({ id }) => id) };
}

/** The output of a response that nobody can go on with: what the store has, and the texts that were told behind it. */
export function withToldTexts(stored: readonly Item[], told: readonly WireEvent[]): Item[] {
  const state = told.reduce<ResponseState | null>(accumulateResponse, null);
  const known = new Set(stored.map(({ id }) => id));
  const texts = (state?.output ?? []).filter(({ id, type }) => {
    return (type === "message" || type === "reasoning") && !known.has(id ?? "");
  }) as Item[];
  return [
    ...stored,
    ...texts.map((item) =>
      item["status"] === "in_progress" ? { ...item, status: "incomplete" } : item,
    ),
  ];
}
