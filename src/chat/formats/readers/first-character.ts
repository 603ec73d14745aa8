/** Chooses a reader by the first visible character: models write more than one form after one marker. */

import { isBlank } from "./json-scanner.ts";
import type { CallReader, CallSink, MakeReader, OfferedTools, ReaderState } from "./reader.ts";

export function byFirstCharacter(
  forms: Readonly<Record<string, MakeReader>>,
  other: MakeReader,
): MakeReader {
  return (sink, offered) => new FirstCharacterReader(sink, offered, forms, other);
}

class FirstCharacterReader implements CallReader {
  readonly #make: (character: string) => CallReader;
  #reader: CallReader | null = null;
  #blanks = "";
  #isClosed = false;

  constructor(
    sink: CallSink,
    offered: OfferedTools | null,
    forms: Readonly<Record<string, MakeReader>>,
    other: MakeReader,
  ) {
    this.#make = (character) => (forms[character] ?? other)(sink, offered);
  }

  get state(): ReaderState {
    return this.#reader?.state ?? (this.#isClosed ? "refused" : "undecided");
  }

  get inString(): boolean {
    return this.#reader?.inString ?? false;
  }

  feed(character: string): boolean {
    if (this.#reader !== null) return this.#reader.feed(character);
    if (isBlank(character)) {
      this.#blanks += character;
      return true;
    }
    this.#reader = this.#make(character);
    for (const blank of this.#blanks) this.#reader.feed(blank);
    return this.#reader.feed(character);
  }

  close(): void {
    this.#isClosed = true;
    this.#reader?.close();
  }
}
