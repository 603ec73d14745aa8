/** What a response adds to its conversation. */

import { isClientCall, outputTypeOf } from "./client-calls.ts";
import { roundOf } from "../answer/ids.ts";
import type { Item, OutputItem } from "./types.ts";

/**
 * The output, with the outputs of calls that were answered meanwhile: they follow the last call of
 * their round, as the model read them. @param answers by call id
 */
export function transcriptOf(
  output: readonly OutputItem[],
  answers: ReadonlyMap<string, Item>,
): Item[] {
  const transcript: Item[] = [];
  let waiting: Item[] = [];
  let round = "";
  for (const item of output) {
    const isCall = isClientCall(item) || item.type === "mcp_call";
    if (waiting.length > 0 && !(isCall && roundOf(item.id) === round)) {
      transcript.push(...waiting);
      waiting = [];
    }
    transcript.push({ ...item });
    if (!isClientCall(item)) continue;
    round = roundOf(item.id);
    const answer = answers.get(item.call_id);
    if (answer !== undefined) waiting.push({ ...answer, type: outputTypeOf(item) });
  }
  return [...transcript, ...waiting];
}
