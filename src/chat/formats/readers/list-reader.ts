/** Reads a JSON array of call objects; one object without brackets will do. */

import { isBlank } from "./json-scanner.ts";
import { ObjectReader } from "./object-reader.ts";
import type { CallReader, CallSink, OfferedTools, ReaderState } from "./reader.ts";

export class ListReader implements CallReader {
  readonly #sink: CallSink;
  readonly #offered: OfferedTools | null;
  #object: ObjectReader | null = null;
  #state: ReaderState = "undecided";
  #isList = false;

  constructor(sink: CallSink, offered: OfferedTools | null) {
    this.#sink = sink;
    this.#offered = offered;
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
      this.#object = new ObjectReader(this.#sink, this.#offered);
      return this.#feedObject(this.#object, character);
    }
    const isBetween = this.#state === "between";
    if (character === "[" && !this.#isList && !isBetween) this.#isList = true;
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

  #feedObject(object: ObjectReader, character: string): boolean {
    const isTaken = object.feed(character);
    this.#follow(object);
    return isTaken || (this.#object === null && this.#state === "between" && this.feed(character));
  }

  #follow(object: ObjectReader): void {
    this.#state = object.state;
    if (object.state !== "done") return;
    this.#object = null;
    this.#state = this.#isList ? "between" : "done";
  }
}
