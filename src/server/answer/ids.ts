/** Ids of what the server makes, with the prefixes that clients know. */

import { randomBytes } from "node:crypto";

type IdPrefix =
  | "resp"
  | "msg"
  | "rs"
  | "fc"
  | "fco"
  | "ctc"
  | "ctco"
  | "mcp"
  | "mcpl"
  | "mcpr"
  | "conv"
  | "item"
  | "cmp"
  | "run";

const idBytes = 24;
/** Random bytes in stock: to fetch them for each of 10,000 items would take longer than to read the items. */
let stock = randomBytes(0);
let used = 0;

/**
 * `resp_` and 48 hexadecimal digits; of what only one of several replicas has, `resp_<replica>.` and the digits, so that a
 * proxy finds the replica in whatever names it.
 */
export function newId(prefix: IdPrefix, replica?: string): string {
  if (used === stock.length) {
    stock = randomBytes(256 * idBytes);
    used = 0;
  }
  const id = stock.toString("hex", used, used + idBytes);
  used += idBytes;
  return `${prefix}_${ofReplica(replica)}${id}`;
}

/** What such an id has before its digits. */
export function ofReplica(replica: string | undefined): string {
  return replica === undefined ? "" : `${replica}.`;
}

/** Ids of the calls of one round begin alike, so that a history tells which were made side by side. */
export class RoundIds {
  #stem = randomBytes(23).toString("hex");
  #count = 0;

  /** Behind a call of the same round. */
  goOn(id: string): void {
    this.#stem = roundOf(id);
    this.#count = Number.parseInt(id.slice(-2), 16) + 1;
  }

  next(prefix: "fc" | "ctc" | "mcp"): string {
    const index = (this.#count++ % 256).toString(16).padStart(2, "0");
    return `${prefix}_${this.#stem}${index}`;
  }
}

/** Equal for calls of one round. */
export function roundOf(id: string): string {
  return id.slice(id.indexOf("_") + 1, -2);
}
