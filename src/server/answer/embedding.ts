import type { JsonObject } from "../body/field.ts";
import { isNumber } from "../body/prompt-inputs.ts";

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
