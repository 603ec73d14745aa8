/** Writes calls as a format's syntax says, apart from the grammar and from the parsers. */

import type { ArgumentStyle, CallSyntax, ParameterArguments } from "../../guidance/call-syntax.ts";
import { NumberText } from "../../json.ts";

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
    case "parameters": {
      const { close, line } = style.end;
      return Object.entries(args)
        .map(([key, value]) => {
          const text =
            typeof value === "string"
              ? value
              : writeJson(value, style.itemSeparator, style.keySeparator);
          const middle = typeof value === "string" ? style.middle : middleOf(style, value);
          const end = line + close.replace("$key", () => key) + style.after;
          return style.open + key + middle + text + end;
        })
        .join("");
    }
    case "python": {
      const values = style.words === "json" ? { ...python, words: {} } : python;
      return Object.entries(args)
        .map(([key, value]) => `${key}=${writeValue(value, values)}`)
        .join(", ");
    }
    case "bare-keys": {
      const { stringMark: mark } = style;
      const string = (text: string): string => mark + text + mark;
      return writeValue(args, { ...bareKeys, string });
    }
  }
}

function middleOf({ middle, middleOfOthers = middle }: ParameterArguments, value: unknown): string {
  if (typeof middleOfOthers === "string") return middleOfOthers;
  const plain = Array.isArray(value) ? "array" : typeof value;
  const type = value === null ? "null" : value instanceof NumberText ? "number" : plain;
  return middleOfOthers[type] ?? "";
}

/** `item` and `key`: what stands between two entries, and between a key and its value. */
export function writeJson(value: unknown, item: string, key: string): string {
  return writeValue(value, { ...python, item, key, words: {} });
}

interface ValueStyle {
  string(text: string): string;
  name(key: string): string;
  /** Between two entries, and between a key and its value. */
  item: string;
  key: string;
  /** Literals that are not written as in JSON. */
  words: Readonly<Record<string, string>>;
}

const python: ValueStyle = {
  string: (text) => JSON.stringify(text),
  name: (key) => JSON.stringify(key),
  item: ", ",
  key: ": ",
  words: { true: "True", false: "False", null: "None" },
};

const bareKeys = { name: (key: string): string => key, item: ",", key: ":", words: {} };

function writeValue(value: unknown, style: ValueStyle): string {
  if (typeof value === "string") return style.string(value);
  if (value instanceof NumberText) return value.text;
  const write = (entry: unknown): string => writeValue(entry, style);
  if (Array.isArray(value)) return `[${value.map(write).join(style.item)}]`;
  if (typeof value !== "object" || value === null) {
    const json = JSON.stringify(value);
    return style.words[json] ?? json;
  }
  const entries = Object.entries(value).map(
    ([name, entry]) => style.name(name) + style.key + write(entry),
  );
  return `{${entries.join(style.item)}}`;
}
