/**
 * What the stream of a response told before its process ended. The next process says the round once more, from its tokens:
 * what was told is taken away, and the rest is numbered behind it.
 */

import { accumulateResponse, type ResponseState } from "../../client/response-state.ts";
import { FermataError } from "../../errors.ts";
import type { RunEvent } from "../../tools/types.ts";
import { isClientCall } from "./client-calls.ts";
import { added, done } from "./events/item.ts";
import type { Item, OutputItem, WireEvent } from "./types.ts";

const textTypes = {
  content: "response.output_text.delta",
  reasoning: "response.reasoning_text.delta",
} as const;

/** How much of a prompt was read is not told again. */
export function withoutProgress(told: readonly WireEvent[]): WireEvent[] {
  return told.filter(({ type }) => type !== "response.in_progress");
}

/** Where the round begins that the model was writing. @param next the number of the first event behind the last hold */
export function roundBegin(told: readonly WireEvent[], next: number): number | null {
  const first = told.find(({ type, sequence_number: at }) => at >= next && type === added);
  return first?.sequence_number ?? null;
}

/** The items that were told of before an event, whole where their end was told. @param known what the store has of them */
export function itemsBefore(
  told: readonly WireEvent[],
  begin: number,
  known: readonly OutputItem[],
): OutputItem[] {
  const items = new Map<number, OutputItem>();
  for (const { type, sequence_number: at, output_index: index, item } of told) {
    if (at >= begin || (type !== added && type !== done)) continue;
    const { id } = item as Item;
    const stored = type === added ? known.find((one) => one.id === id) : undefined;
    items.set(index as number, stored ?? (item as OutputItem));
  }
  return [...items.values()];
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

export class Retelling {
  /** The ids of its items, in their order. */
  readonly ids: readonly string[];
  /** Of its calls as the model's; those of servers have none on the wire. */
  readonly callIds: readonly string[];
  readonly #told: WireEvent[];
  /** The pieces in which its texts were told. */
  readonly #pieces: { kind: keyof typeof textTypes; length: number }[];
  #held = "";

  /** @param told the events of the round */
  constructor(told: readonly WireEvent[]) {
    this.#told = [...told];
    const items = told.flatMap(({ type, item }) => (type === added ? [item as OutputItem] : []));
    this.ids = items.map(({ id }) => id);
    this.callIds = items.flatMap((item) =>
      isClientCall(item)
        ? [item.call_id]
        : item.type === "mcp_call" || item.type === "mcp_approval_request"
          ? [item.id]
          : [],
    );
    this.#pieces = told.flatMap(({ type, delta }) =>
      (["content", "reasoning"] as const)
        .filter((kind) => type === textTypes[kind])
        .map((kind) => ({ kind, length: String(delta).length })),
    );
  }

  /** How many events it has not taken away yet. */
  get left(): number {
    return this.#told.length;
  }

  /** The event in the pieces in which it was told. */
  cut(event: RunEvent): RunEvent[] {
    if (event.type !== "content" && event.type !== "reasoning") return [event];
    const events: RunEvent[] = [];
    let { text } = event;
    for (;;) {
      const [piece] = this.#pieces;
      if (piece === undefined || text === "") break;
      if (piece.kind !== event.type) throw lost();
      const missing = piece.length - this.#held.length;
      this.#held += text.slice(0, missing);
      text = text.slice(missing);
      if (this.#held.length < piece.length) return events;
      events.push({ ...event, text: this.#held });
      this.#held = "";
      this.#pieces.shift();
    }
    const isEmpty = text === "" && events.length > 0;
    return isEmpty ? events : [...events, { ...event, text }];
  }

  /** Whether it was told. @throws FermataError engine_crashed: something else was */
  takes({ type, delta }: WireEvent): boolean {
    const told = this.#told.shift();
    if (told === undefined) return false;
    if (told.type !== type || told["delta"] !== delta) throw lost();
    return true;
  }
}

function lost(): FermataError {
  const message =
    "What was told before the restart does not fit what the model writes now. Ask again.";
  return new FermataError("engine_crashed", message);
}
