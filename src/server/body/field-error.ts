/** The error about a field of a request: which field, what is wrong, what to do. And the kinds of JSON values. */

import { FermataError, type ErrorCode } from "../../errors.ts";

export type JsonObject = { [key: string]: unknown };

/** "field": problem. Remedy. */
export function fieldError(
  code: ErrorCode,
  field: string,
  problem: string,
  remedy: string,
): FermataError {
  return new FermataError(code, `"${field}" ${problem}. ${remedy}.`, { param: field });
}

export function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** @throws FermataError invalid_json, invalid_type if a request's body is no JSON object; `remedy` shows one */
export function expectBody(body: unknown, remedy: string): asserts body is JsonObject {
  if (isObject(body)) return;
  if (body === undefined) throw fieldError("invalid_json", "body", "is empty", remedy);
  const problem = `must be a JSON object, not ${kindOf(body)}`;
  throw fieldError("invalid_type", "body", problem, remedy);
}

export function isAbsent(value: unknown): value is null | undefined {
  return value === undefined || value === null;
}

/** "a string", "an array"…: the kind only, since values may be private. */
export function kindOf(value: unknown): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return "an array";
  if (typeof value === "object") return "an object";
  return value === undefined ? "missing" : `a ${typeof value}`;
}
