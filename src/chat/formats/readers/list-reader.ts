/** Reads a JSON array of call objects; one object without brackets will do. */

import { isBlank } from "./json-scanner.ts";
import { ObjectReader } from "./object-reader.ts";
import type { CallReader, CallSink, OfferedTools, ReaderState } from "./reader.ts";

export interface ListItems {
  /** Reads an item from its bracket on. */
  item(): CallReader;
  /** Characters after an item that say nothing. */
  ignored: string;
}

export class ListReader implements CallReader {
  readonly #items: ListItems;
  #object: CallReader | null = null;
  #state: ReaderState = "undecided";
  #isList = false;

  /** @param items Default: call objects */
  constructor(sink: CallSink, offered: OfferedTools | null, items?: ListItems) {
    this.#items = items ?? { item: () => new ObjectReader(sink, offered), ignored: "" };
  }

  get state(): ReaderState {
    return this.#state;
  }

  get inString(): boolean {
    return this.#object?.inString ?? false;
  }

  feed(character: string): boolean {
    if (this.#object !== null) return this.#feedObject(this.#object, character);
    if (isBlank(character)) return true;
    if (character === "{") {
      this.#object = this.#items.item();
      return this.#feedObject(this.#object, character);
    }
    const isBetween = this.#state === "between";
    if (character === "[" && !this.#isList && !isBetween) this.#isList = true;
    else if (this.#items.ignored.includes(character) && isBetween) return true;
    else if (character === "]" && isBetween) this.#state = "done";
    else if (character !== "," || !isBetween) {
      this.#state = isBetween ? "done" : "refused";
      return false;
    }
    return true;
  }

  close(): void {
    this.#object?.close();
    if (this.#object !== null) this.#follow(this.#object);
    this.#state = this.#state === "between" || this.#state === "done" ? "done" : "refused";
  }

  #feedObject(object: CallReader, character: string): boolean {
    const isTaken = object.feed(character);
    this.#follow(object);
    return isTaken || (this.#object === null && this.#state === "between" && this.feed(character));
  }

  #follow(object: CallReader): void {
    this.#state = object.state;
    if (object.state !== "done") return;
    this.#object = null;
    this.#state = this.#isList ? "between" : "done";
  }
}
