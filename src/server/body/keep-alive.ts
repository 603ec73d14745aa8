/** `keep_alive`: how long a request's model stays in memory. */

import { fieldError, ignored, optional, type Type, anything } from "./field.ts";
import { isJsonObject } from "../../json.ts";

const remedy = 'Send seconds, or a text as "5m"';
const secondsOf: Record<string, number> = { ms: 0.001, s: 1, m: 60, h: 3600 };
const duration = /^-?(\d+(\.\d+)?(ms|s|m|h))+$/;

/**
 * Milliseconds; negative: for ever. Undefined: the body has none. Seconds, or Go's durations (`1h30m`).
 * @throws FermataError invalid_value
 */
export function keepAliveOf(body: unknown): number | undefined {
  const value = isJsonObject(body) ? body["keep_alive"] : undefined;
  if (value === undefined || value === null || value === "") return undefined;
  if (typeof value === "number" && Number.isFinite(value)) return value < 0 ? -1 : value * 1000;
  if (typeof value === "string" && /^-?\d+$/.test(value))
    return keepAliveOf({ keep_alive: Number(value) });
  if (typeof value !== "string" || !duration.test(value))
    throw fieldError("invalid_value", "keep_alive", "is no duration", remedy);
  if (value.startsWith("-")) return -1;
  const parts = value.matchAll(/(\d+(?:\.\d+)?)(ms|s|m|h)/g);
  return [...parts].reduce(
    (sum, [, count, unit]) => sum + Number(count) * secondsOf[unit!]! * 1000,
    0,
  );
}

const keepAliveType: Type<number | undefined> = {
  schema: { type: ["number", "string"] },
  remedy,
  read: (value) => keepAliveOf({ keep_alive: value }),
};

/** Of models that never leave. */
export const noKeepAlive = ignored("has no effect: the model stays loaded", anything);

/** Read with the whole body, before its model is there: see `modelRoutes`. */
export const keepAliveField = optional(
  keepAliveType,
  "with `--models-dir`: how long the model stays in memory when nobody uses it, in seconds or as `5m`; negative is for ever; a single model stays loaded",
);
