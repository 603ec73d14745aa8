/**
 * Which event of an item may follow which, as data: one table an item family, each beside the code
 * that makes the events. Every item begins with `added` and ends with `done`.
 */

export const added = "response.output_item.added";
export const done = "response.output_item.done";

export interface ItemGrammar {
  /** `type` of the item. */
  item: string;
  /** What may follow an event; `done` ends the item. */
  follows: Readonly<Record<string, readonly string[]>>;
}

export const partAdded = "response.content_part.added";
export const partDone = "response.content_part.done";

/** Of an item with one text part: its deltas are `delta` events, its text closes with `textDone`. */
export function textGrammar(item: string, delta: string, textDone: string): ItemGrammar {
  return {
    item,
    follows: {
      [added]: [partAdded],
      [partAdded]: [delta, textDone],
      [delta]: [delta, textDone],
      [textDone]: [partDone],
      [partDone]: [done],
    },
  };
}
