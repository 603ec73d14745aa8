/**
 * The markers of a call whose arguments are parameters, and where a value ends: at its closing marker, or, where that
 * was left out, at what stands behind it.
 */

export interface ParameterCalls {
  /** Before the name, or "". */
  nameOpen: string;
  /** Characters that end the name; `<` is also the beginning of what follows. */
  nameEnd: string;
  keyOpen: string;
  keyClose: string;
  /** After the key, before the value's type; `string` is what it says of strings. Default: none. */
  keyAttribute?: { open: string; string: string };
  /** Between key and value, or "". */
  valueOpen: string;
  /** `$key` in it is the key. */
  valueClose: string;
  /** After the last parameter, or "" where only the call's own marker follows. */
  end: string;
  /** One line break at each end of a value is the format's. */
  valueOnLines: boolean;
  /** A value may stand in `<![CDATA[` and `]]>`. */
  hasCdata?: boolean;
  /** What ends a call, in this order: at the end of all text it ends a value without `valueClose`, too. */
  implicitEnds?: readonly string[];
  /** The next call's opening, for the same. */
  next?: string;
  /** Stands before each tag of a value that is written as elements. */
  elementMark?: string;
  /** Only offered tools are called. */
  offeredOnly?: boolean;
}

/**
 * `close`: the closing marker. `key`: the next parameter's whole opening. `call`: the call's end and the next one's
 * opening. `tail`: the call's end; the value's only if nothing follows. `partial`: may become one of them.
 */
export type ValueEnd = "close" | "key" | "call" | "tail" | "partial" | "none";

/** What is longer is text. */
const MAX_HELD = 200;
const blanks = /^\s*/u;

export function valueEnd(held: string, calls: ParameterCalls, valueClose: string): ValueEnd {
  if (held === valueClose) return "close";
  if (valueClose.startsWith(held)) return "partial";
  if (held.length > MAX_HELD) return "none";
  const key = calls.elementMark === undefined ? nextKey(held, calls) : "none";
  return key === "none" ? tail(held, calls) : key;
}

/** The key in a text that is `key`. */
export function keyIn(held: string, { keyOpen, keyClose }: ParameterCalls): string {
  return held.slice(keyOpen.length, held.indexOf(keyClose, keyOpen.length));
}

function nextKey(held: string, { keyOpen, keyClose, valueOpen }: ParameterCalls): ValueEnd {
  if (keyOpen.startsWith(held)) return "partial";
  if (!held.startsWith(keyOpen)) return "none";
  const rest = held.slice(keyOpen.length);
  const at = rest.indexOf(keyClose);
  if (at < 0) return /^[\w.$-]+[^\w\n]*[^\n]*$|^$/u.test(rest) ? "partial" : "none";
  const after = rest.slice(at + keyClose.length).replace(blanks, "");
  if (after === valueOpen) return "key";
  return valueOpen.startsWith(after) ? "partial" : "none";
}

function tail(held: string, { implicitEnds = [], next = "" }: ParameterCalls): ValueEnd {
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
