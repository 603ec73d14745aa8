/** The filter `format`: numbers and texts put into a text, as Python's `text % values` does it. */

import type { RenderBudget } from "./budget.ts";
import { type Value, isString, reprOf, textOf } from "./library.ts";
import { numberOf } from "./values.ts";

const directive = /%(?:\((\w*)\))?([-+ 0#]*)(\d*)(?:\.(\d*))?([a-zA-Z%]?)/gu;
/** Of a width, and of digits behind the point. */
const mostDigits = 100;

interface Place {
  flags: string;
  width: number;
  precision: number | undefined;
}

/** @throws TypeError as Python does: a value is missing, left over, or of another type */
export function printf(
  pattern: string,
  places: readonly Value[],
  named: ReadonlyMap<unknown, Value>,
  budget: RenderBudget,
): string {
  let next = 0;
  const text = pattern.replaceAll(
    directive,
    (match, name: string | undefined, flags: string, wide: string, deep?: string, kind = "") => {
      if (kind === "%") return "%";
      const value = name === undefined ? places[next++] : named.get(name);
      if (value === undefined) throw new TypeError(`there is no value for "${match}"`);
      const precision = deep === undefined ? undefined : Number(deep);
      const place = { flags, width: Number(wide), precision };
      if (Math.max(place.width, precision ?? 0) > mostDigits)
        throw new TypeError(`"${match}" is wider than ${mostDigits}`);
      const written = padded(write(kind, value, place), place, kind);
      budget.write(written.length);
      return written;
    },
  );
  if (named.size === 0 && next < places.length)
    throw new TypeError("a text has fewer places than values");
  return text;
}

function write(kind: string, value: Value, place: Place): string {
  const { flags, precision } = place;
  const isLong = flags.includes("#");
  switch (kind) {
    case "s":
      return textOf(value).slice(0, precision);
    case "r":
    case "a":
      return reprOf(value).slice(0, precision);
    case "c":
      return isString(value) ? value.value : String.fromCodePoint(numberOf(value));
    case "d":
    case "i":
    case "u":
      return signed(
        whole(value)
          .toString()
          .padStart(precision ?? 0, "0"),
        value,
        flags,
      );
    case "x":
    case "X": {
      const digits = whole(value)
        .toString(16)
        .padStart(precision ?? 0, "0");
      const text = isLong ? `0x${digits}` : digits;
      return signed(kind === "X" ? text.toUpperCase() : text, value, flags);
    }
    case "o": {
      const digits = whole(value)
        .toString(8)
        .padStart(precision ?? 0, "0");
      return signed(isLong ? `0o${digits}` : digits, value, flags);
    }
    case "f":
    case "F":
    case "e":
    case "E":
    case "g":
    case "G": {
      const size = Math.abs(numberOf(value));
      const text = Number.isFinite(size)
        ? real(kind.toLowerCase(), size, precision ?? 6, isLong)
        : String(size).replace("Infinity", "inf").toLowerCase();
      return signed(kind === kind.toLowerCase() ? text : text.toUpperCase(), value, flags);
    }
    default:
      throw new TypeError(`"%${kind}" is no place for a value`);
  }
}

/** Without its sign. */
function whole(value: Value): bigint {
  const number = Math.abs(Math.trunc(numberOf(value)));
  if (!Number.isFinite(number)) throw new TypeError("an infinite number has no digits");
  return BigInt(number);
}

function real(kind: string, size: number, precision: number, isLong: boolean): string {
  if (kind === "f") return nearest(size, precision).toFixed(precision);
  if (kind === "e") return twoDigits(size.toExponential(precision));
  const digits = Math.max(1, precision);
  const power = size === 0 ? 0 : Number(size.toExponential(digits - 1).split("e")[1]);
  const isShort = power >= -4 && power < digits;
  const text = isShort ? size.toFixed(digits - 1 - power) : size.toExponential(digits - 1);
  const [number, exponent] = text.split("e");
  const kept = isLong || !number!.includes(".") ? number! : number!.replace(/\.?0+$/u, "");
  return exponent === undefined ? kept : twoDigits(`${kept}e${exponent}`);
}

/** Of the exponent. */
function twoDigits(number: string): string {
  return number.replace(/e([+-])(\d)$/u, "e$10$2");
}

function signed(digits: string, value: Value, flags: string): string {
  const number = numberOf(value);
  if (number < 0 || Object.is(number, -0)) return `-${digits}`;
  if (flags.includes("+")) return `+${digits}`;
  return flags.includes(" ") ? ` ${digits}` : digits;
}

function padded(text: string, { flags, width }: Place, kind: string): string {
  if (flags.includes("-")) return text.padEnd(width);
  if (!flags.includes("0") || "srac".includes(kind)) return text.padStart(width);
  const [, start = "", digits = ""] = /^([-+ ]?(?:0[xXo])?)(.*)$/u.exec(text) ?? [];
  return start + digits.padStart(width - start.length, "0");
}

/** Of two numbers that are as near the even one. */
export function nearest(value: number, digits: number): number {
  if (!Number.isInteger(digits)) throw new TypeError("round takes a whole number of digits");
  // No number has more behind the point, or before it.
  if (!Number.isFinite(value) || digits > 323) return value;
  if (digits < -309) return 0;
  let whole = Math.abs(value);
  let halves = 0n;
  for (; !Number.isInteger(whole); whole *= 2) halves += 1n;
  const tens = 10n ** BigInt(Math.abs(digits));
  const above = BigInt(whole) * (digits > 0 ? tens : 1n);
  const below = 2n ** halves * (digits < 0 ? tens : 1n);
  const kept = above / below;
  const rest = 2n * (above % below);
  const isUp = rest === below ? kept % 2n === 1n : rest > below;
  return Math.sign(value) * Number(`${kept + (isUp ? 1n : 0n)}e${-digits}`);
}
