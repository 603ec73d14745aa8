/** What all parts of one answer say of themselves. */

import { createHash, randomBytes } from "node:crypto";
import type { ServedModel } from "../services.ts";

/** What all chunks of one response have in common. */
export interface ResponseIdentity {
  id: string;
  /** Unix seconds. */
  created: number;
  model: string;
  /** Equal for all answers of one model in one context. */
  system_fingerprint: string;
}

/** @param answers the name of the model or agent that answers */
export function newIdentity(
  prefix: "chatcmpl" | "cmpl",
  answers: string,
  served: ServedModel,
): ResponseIdentity {
  return {
    id: `${prefix}-${randomBytes(12).toString("hex")}`,
    created: Math.floor(Date.now() / 1000),
    model: answers,
    system_fingerprint: fingerprintOf(served),
  };
}

/** Begins like llama-server's, which names its build. */
export function fingerprintOf(served: ServedModel): string {
  return `b${createHash("sha256").update(JSON.stringify(served)).digest("hex").slice(0, 10)}`;
}
