/** The models beside the one that generates: for vectors, and for scores. */

import { FermataError } from "../../errors.ts";
import type { JsonObject } from "../../json.ts";
import { isNumber } from "../body/prompt-inputs.ts";
import type { RouteContext } from "../context.ts";
import type { ServedEmbedder, ServedReranker } from "../services.ts";

/** @throws FermataError unsupported_value: there is none */
export function embedderOf({ services: { embedder, model } }: RouteContext): ServedEmbedder {
  return embedder ?? refuse(`gives no embeddings: ${model.id} generates text`, "--embedding-model");
}

/** @throws FermataError unsupported_value: there is none */
export function rerankerOf({ services: { reranker, model } }: RouteContext): ServedReranker {
  return reranker ?? refuse(`ranks nothing: ${model.id} generates text`, "--rerank-model");
}

function refuse(problem: string, flag: string): never {
  const message = `"model" ${problem}. Start the server with ${flag} FILE.`;
  throw new FermataError("unsupported_value", message, { param: "model" });
}

/** Each answers to every name. @param what it does: `names a model that does not …` */
export function warnOfName(
  name: string | undefined,
  { id }: { id: string },
  what: "embed" | "rank",
  { warnings }: RouteContext,
): void {
  if (name !== undefined && name !== id)
    warnings.warn(`model=${name}`, `names a model that does not ${what} here; ${id} answers`);
}

/** Models that were trained for it say most in their first numbers. */
export function shortened(vector: Float32Array, dimensions: number): Float32Array {
  if (dimensions >= vector.length) return vector;
  const head = vector.slice(0, dimensions);
  const length = Math.hypot(...head);
  return length === 0 ? head : head.map((value) => value / length);
}

/** Where an input stands in a body that was read: `input`, or `input[i]` of a list. */
export function inputField(name: string, body: unknown): (index: number) => string {
  const sent = (body as JsonObject)[name];
  const isList = Array.isArray(sent) && !sent.every(isNumber);
  return isList ? (index) => `${name}[${index}]` : () => name;
}
