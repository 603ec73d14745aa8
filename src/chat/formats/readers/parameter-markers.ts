/**
 * The markers of a call whose arguments are parameters, and where a value ends: where the grammar ends it, or, if its
 * closing marker was left out, at what stands behind it.
 */

import type { ValueEnd } from "../../../guidance/call-syntax.ts";
import { anyBlanks } from "../../../json.ts";

/** As the tables of formats write them. */
export interface ParameterMarkers {
  key: readonly [open: string, close: string];
  /** An attribute behind the key: what it says of strings, and of others, which may be the name of their type. */
  type?: { open: string; string: string; others: string };
  /** Around the value, or "". `$key` in what closes it is the key. */
  value: readonly [open: string, close: string];
  /** Blanks that the template writes between key and value, and after a parameter. */
  between?: string;
  after?: string;
  /** The value stands on lines of its own. */
  onLines?: boolean;
  /** A value may stand in `<![CDATA[` and `]]>`. */
  hasCdata?: boolean;
  /** Stands before each tag of a value that is written as elements. Default: none is. */
  elementMark?: string;
  /** What else ends a call. */
  ends?: readonly string[];
}

/** With those of the whole call. */
export interface ParameterCalls extends ParameterMarkers {
  /** Before the name, or "". */
  nameOpen: string;
  /** Characters that end the name; `<` is also the beginning of what follows. */
  nameEnd: string;
  valueEnd: ValueEnd;
  /** After the last parameter, or "" where only the call's own marker follows. */
  end: string;
  /** What ends a call, in this order: at the end of all text it ends a value without its closing marker, too. */
  implicitEnds: readonly string[];
  /** The next call's opening, for the same. */
  next: string;
  /** Only offered tools are called. */
  offeredOnly?: boolean;
  /** No value lacks its closing marker. */
  valuesClose?: boolean;
}

/**
 * `close`: the closing marker, and maybe what stands behind it. `key`: the next parameter's whole opening. `call`: the
 * call's end and the next one's opening. `tail`: the call's end; the value's only if nothing follows. `partial`: may
 * become one of them.
 */
export type EndOfValue = "close" | "key" | "call" | "tail" | "partial" | "none";

export interface ValuePlace {
  /** The closing marker, with the key in it. */
  close: string;
  /** Nothing stands before `held` on its line. */
  isLineStart: boolean;
  /** May a parameter of this key follow? Else it is text of the value. */
  mayFollow: (key: string) => boolean;
}

/** What is longer is text. */
const MAX_HELD = 200;
const blanks = new RegExp(`^${anyBlanks}`, "u");

export function valueEnd(held: string, calls: ParameterCalls, place: ValuePlace): EndOfValue {
  if (place.close.startsWith(held) && held !== place.close) return "partial";
  if (held.startsWith(place.close)) return closing(held.slice(place.close.length), calls, place);
  if (held.length > MAX_HELD) return "none";
  // Markers of values on lines of their own begin lines, too; behind one that does not, nothing follows.
  const isWithin = calls.valueEnd.line !== "" && !place.isLineStart;
  const lacksNone = calls.valuesClose === true || calls.elementMark !== undefined;
  const key = isWithin || lacksNone ? "none" : nextKey(held, calls, place);
  if (key !== "none") return key;
  const end = tail(held, calls);
  return isWithin && end === "call" ? "none" : end;
}

/** @param behind the closing marker */
function closing(behind: string, calls: ParameterCalls, { isLineStart }: ValuePlace): EndOfValue {
  const { line, followers } = calls.valueEnd;
  if (line === "" || isLineStart) return "close";
  const text = behind.replace(blanks, "");
  if (followers.includes(text)) return "close";
  return followers.some((marker) => marker.startsWith(text)) ? "partial" : "none";
}

/** Whether what stands behind a value's closing marker is the call's end or its section's, which end a function, too. */
export function endsCall(behind: string, { key, end }: ParameterCalls): boolean {
  const text = behind.replace(blanks, "");
  return text !== "" && text !== key[0] && text !== end;
}

/** The text between the markers of a key, in one that is `key`. */
export function keyIn(held: string, { key: [open, close] }: ParameterCalls): string {
  return held.slice(open.length, held.indexOf(close, open.length));
}

/** @param text between the markers of a key
 * @returns isString: whether the value is one, where the text says so */
export function keyOf(
  text: string,
  { type }: ParameterMarkers,
): { key: string; isString?: boolean } {
  const at = type === undefined ? -1 : text.lastIndexOf(type.open);
  if (type === undefined || at < 0) return { key: text.trim() };
  const isString = text.slice(at + type.open.length) === type.string;
  return { key: text.slice(0, at).trim(), isString };
}

function nextKey(held: string, calls: ParameterCalls, place: ValuePlace): EndOfValue {
  const [keyOpen, keyClose] = calls.key;
  const [valueOpen] = calls.value;
  if (keyOpen.startsWith(held)) return "partial";
  if (!held.startsWith(keyOpen)) return "none";
  const rest = held.slice(keyOpen.length);
  const at = rest.indexOf(keyClose);
  if (at < 0) return /^[\w.$-]+[^\w\n]*[^\n]*$|^$/u.test(rest) ? "partial" : "none";
  if (!place.mayFollow(keyOf(rest.slice(0, at), calls).key)) return "none";
  const after = rest.slice(at + keyClose.length).replace(blanks, "");
  if (after === valueOpen) return "key";
  return valueOpen.startsWith(after) ? "partial" : "none";
}

function tail(held: string, { implicitEnds, next }: ParameterCalls): EndOfValue {
  let rest = held;
  let hasEnded = false;
  for (const marker of implicitEnds) {
    rest = rest.replace(blanks, "");
    if (rest.startsWith(marker)) {
      rest = rest.slice(marker.length);
      hasEnded = true;
    } else if (rest !== "" && marker.startsWith(rest)) return "partial";
  }
  if (!hasEnded) return "none";
  rest = rest.replace(blanks, "");
  if (rest === "") return "tail";
  if (rest === next) return "call";
  return next.startsWith(rest) ? "partial" : "none";
}
