import { createHash, randomBytes } from "node:crypto";
import type { ResponseIdentity } from "./openai/completion.ts";
import type { ServedModel } from "./services.ts";

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
