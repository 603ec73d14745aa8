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
