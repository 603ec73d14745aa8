/** Numbers that are no integers, which no keyword of the mask engine describes. */

import type { JsonObject } from "../types.ts";

/** Of a number: between these integers, null where there is no limit. */
export const fractionKeyword = "x-fraction";

type Limit = number | null;

/** @returns an expression of all of them, without exponents; null: the schema does not say so */
export function fractionsOf(schema: JsonObject): string | null {
  const limits = schema[fractionKeyword];
  if (!Array.isArray(limits)) return null;
  const [low, high] = limits as [Limit, Limit];
  const ways = [
    ...(high === null || high > 0 ? [integers(Math.max(low ?? 0, 0), high)] : []),
    ...(low === null || low < 0 ? [`-(${integers(Math.max(-(high ?? 0), 0), low && -low)})`] : []),
  ];
  return `(${ways.join("|")})\\.[0-9]*[1-9][0-9]*`;
}

/** From the one on, to before the other. */
function integers(from: number, end: Limit): string {
  const first = String(from);
  if (end === null) {
    const more = from === 0 ? `[1-9][0-9]*` : `[1-9][0-9]{${first.length},}`;
    return from === 0 ? `0|${more}` : `${between(first, "9".repeat(first.length))}|${more}`;
  }
  const last = String(end - 1);
  const ways = [];
  for (let digits = first.length; digits <= last.length; digits++) {
    const low = digits === first.length ? first : `1${"0".repeat(digits - 1)}`;
    ways.push(between(low, digits === last.length ? last : "9".repeat(digits)));
  }
  return ways.join("|");
}

/** Of as many digits each. */
function between(low: string, high: string): string {
  const [a = "", b = ""] = [low[0], high[0]];
  const [rest, end] = [low.slice(1), high.slice(1)];
  if (rest === "") return a === b ? a : `[${a}-${b}]`;
  if (a === b) return `${a}(${between(rest, end)})`;
  const count = rest.length;
  const inner =
    Number(b) - Number(a) > 1 ? [`[${Number(a) + 1}-${Number(b) - 1}][0-9]{${count}}`] : [];
  return [
    `${a}(${between(rest, "9".repeat(count))})`,
    ...inner,
    `${b}(${between("0".repeat(count), end)})`,
  ].join("|");
}
