/** Chooses a reader by the first visible character: models write more than one form after one marker. */

import { isBlank } from "./json-scanner.ts";
import type { CallReader, CallSink, MakeReader, OfferedTools, ReaderState } from "./reader.ts";

export interface FirstCharacterOptions {
  /** Of any other character. Default: it is no call. */
  other?: MakeReader;
  /** Characters before the first that counts, as blanks are; the reader gets them. */
  skipped?: string;
}

export function byFirstCharacter(
  forms: Readonly<Record<string, MakeReader>>,
  options: FirstCharacterOptions = {},
): MakeReader {
  return (sink, offered) => new FirstCharacterReader(sink, offered, forms, options);
}

class FirstCharacterReader implements CallReader {
  readonly #make: (character: string) => CallReader | undefined;
  readonly #skipped: string;
  #reader: CallReader | undefined;
  #before = "";
  #isRefused = false;

  constructor(
    sink: CallSink,
    offered: OfferedTools | null,
    forms: Readonly<Record<string, MakeReader>>,
    { other, skipped = "" }: FirstCharacterOptions,
  ) {
    this.#make = (character) =>
      (Object.hasOwn(forms, character) ? forms[character] : other)?.(sink, offered);
    this.#skipped = skipped;
  }

  get state(): ReaderState {
    return this.#reader?.state ?? (this.#isRefused ? "refused" : "undecided");
  }

  get inString(): boolean {
    return this.#reader?.inString ?? false;
  }

  feed(character: string): boolean {
    if (this.#reader !== undefined) return this.#reader.feed(character);
    if (isBlank(character) || this.#skipped.includes(character)) {
      this.#before += character;
      return true;
    }
    this.#reader = this.#make(character);
    if (this.#reader === undefined) {
      this.#isRefused = true;
      return false;
    }
    for (const earlier of this.#before) this.#reader.feed(earlier);
    return this.#reader.feed(character);
  }

  close(): void {
    this.#isRefused = true;
    this.#reader?.close();
  }
}
