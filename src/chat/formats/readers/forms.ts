/** How a format's calls are read: what the tables of formats choose from. Models write more than one form after one marker. */

import { ListReader } from "./list-reader.ts";
import { type LiteralCalls, LiteralReader } from "./literal-reader.ts";
import { type NamedCalls, NamedReader } from "./named-reader.ts";
import { ObjectReader } from "./object-reader.ts";
import type { CallReader, CallSink, MakeReader, OfferedTools, ReaderState } from "./reader.ts";
import { isBlank } from "./json-scanner.ts";

/** `{"name": …, "arguments": …}` */
export const jsonObject: MakeReader = (sink) => new ObjectReader(sink, null);

/** The same in a list, or alone. */
export const jsonList: MakeReader = (sink) => new ListReader(sink, null);

/** The same, of offered tools only: no marker tells that calls are meant. */
export const offeredList: MakeReader = (sink, offered) => new ListReader(sink, offered);

/** A name, a marker, one JSON value. */
export function named(calls: NamedCalls): MakeReader {
  return (sink) => new NamedReader(sink, calls);
}

/** Items of a list, each a name and one JSON value. @param ignored characters after an item that say nothing */
export function listOfNamed(calls: NamedCalls, ignored: string): MakeReader {
  return (sink) =>
    new ListReader(sink, null, { item: () => new NamedReader(sink, calls), ignored });
}

export function literals(calls: LiteralCalls): MakeReader {
  return (sink) => new LiteralReader(sink, calls);
}

/** Python: `name(key='value')`, maybe several; `nameClose` stands between the name and the arguments. */
export function pythonCalls({
  several = "list",
  nameClose = "",
}: Partial<Pick<LiteralCalls, "several" | "nameClose">> = {}): LiteralCalls {
  return {
    nameOpen: "",
    nameClose,
    open: "(",
    several,
    stringMarks: ["'", '"'],
    escapes: true,
    assigns: "=",
  };
}

/**
 * Calls without markers are calls if they name offered tools. Here by their first character: a JSON object, or a list
 * of them; `other` reads what a list without objects is.
 */
export function bareCalls(other?: LiteralCalls): Readonly<Record<string, MakeReader>> {
  const list: MakeReader = (sink, offered) => new ListReader(sink, offered);
  return {
    "{": (sink, offered) => new ObjectReader(sink, offered),
    "[": byFirstCharacter(
      { "{": list },
      other === undefined
        ? { skipped: "[" }
        : { skipped: "[", other: (sink, offered) => new LiteralReader(sink, other, offered) },
    ),
  };
}

export interface FirstCharacterOptions {
  /** Of any other character. Default: it is no call. */
  other?: MakeReader;
  /** Characters before the first that counts, as blanks are; the reader gets them. */
  skipped?: string;
}

/** Chooses a reader by the first visible character. */
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
