/** Writes calls as a format's syntax says, apart from the grammar and from the parsers. */

import type { ArgumentStyle, CallSyntax, ParameterArguments } from "../../guidance/call-syntax.ts";

/** Arguments that are text are written as they are. */
export type WrittenCall = readonly [name: string, args: Readonly<Record<string, unknown>> | string];

export function writeCalls(syntax: CallSyntax, calls: readonly WrittenCall[]): string {
  const written = calls.map((call) => syntax.callOpen + writeBody(syntax, call) + syntax.callClose);
  return syntax.sectionOpen + written.join(syntax.separator) + syntax.sectionClose;
}

function writeBody({ body, argumentStyle }: CallSyntax, [name, args]: WrittenCall): string {
  return body
    .map((part) => {
      if (typeof part === "string") return part;
      if (part.part === "name") return name;
      if (part.part === "arguments")
        return typeof args === "string" ? args : writeArguments(argumentStyle, args);
      return part.pattern.includes("9}") ? "000000001" : "0";
    })
    .join("");
}

function writeArguments(style: ArgumentStyle, args: Readonly<Record<string, unknown>>): string {
  switch (style.style) {
    case "json":
      return writeJson(args, style.itemSeparator, style.keySeparator);
    case "parameters":
      return Object.entries(args)
        .map(([key, value]) => {
          const text =
            typeof value === "string"
              ? value
              : writeJson(value, style.itemSeparator, style.keySeparator);
          const middle = typeof value === "string" ? style.middle : middleOf(style, value);
          return style.open + key + middle + text + style.close.replace("$key", () => key);
        })
        .join(style.separator);
    case "python":
      return Object.entries(args)
        .map(([key, value]) => `${key}=${writePython(value)}`)
        .join(", ");
    case "bare-keys":
      return writeBare(args, style.stringMark);
  }
}

function middleOf({ middle, middleOfOthers = middle }: ParameterArguments, value: unknown): string {
  if (typeof middleOfOthers === "string") return middleOfOthers;
  const type = value === null ? "null" : Array.isArray(value) ? "array" : typeof value;
  return middleOfOthers[type] ?? "";
}

/** `item` and `key`: what stands between two entries, and between a key and its value. */
export function writeJson(value: unknown, item: string, key: string): string {
  if (Array.isArray(value))
    return `[${value.map((entry) => writeJson(entry, item, key)).join(item)}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  const entries = Object.entries(value).map(
    ([name, entry]) => JSON.stringify(name) + key + writeJson(entry, item, key),
  );
  return `{${entries.join(item)}}`;
}

function writePython(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(writePython).join(", ")}]`;
  if (value === null) return "None";
  if (typeof value === "boolean") return value ? "True" : "False";
  if (typeof value !== "object") return JSON.stringify(value);
  const entries = Object.entries(value).map(
    ([name, entry]) => `${JSON.stringify(name)}: ${writePython(entry)}`,
  );
  return `{${entries.join(", ")}}`;
}

function writeBare(value: unknown, mark: string): string {
  if (typeof value === "string") return mark + value + mark;
  if (Array.isArray(value)) return `[${value.map((entry) => writeBare(entry, mark)).join(",")}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  const entries = Object.entries(value).map(([name, entry]) => `${name}:${writeBare(entry, mark)}`);
  return `{${entries.join(",")}}`;
}
