/** Where a parameter's value ends: at its closing marker, or, where that was left out, at what stands behind it. */

import type { ParameterCalls } from "./parameter-calls.ts";

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
