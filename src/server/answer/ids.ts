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

/** `resp_` and 48 hexadecimal digits. */
export function newId(prefix: IdPrefix): string {
  return `${prefix}_${randomBytes(24).toString("hex")}`;
}

/** Ids of the calls of one round begin alike, so that a history tells which were made side by side. */
export class RoundIds {
  #stem = randomBytes(23).toString("hex");
  #count = 0;

  next(prefix: "fc" | "ctc" | "mcp"): string {
    const index = (this.#count++ % 256).toString(16).padStart(2, "0");
    return `${prefix}_${this.#stem}${index}`;
  }
}

/** Equal for calls of one round. */
export function roundOf(id: string): string {
  return id.slice(id.indexOf("_") + 1, -2);
}
