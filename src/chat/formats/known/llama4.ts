import { defineFormat } from "../format.ts";
import { bareJson } from "../readers/bare-calls.ts";
import { byFirstCharacter } from "../readers/first-character.ts";
import { ListReader } from "../readers/list-reader.ts";
import { type LiteralCalls, LiteralReader } from "../readers/literal-reader.ts";

const python: LiteralCalls = {
  nameOpen: "",
  nameClose: "",
  open: "(",
  isList: true,
  stringMarks: ["'", '"'],
  escapes: true,
  assigns: "=",
};

/** Llama 4: bare JSON as Llama 3, or a list of Python calls, bare or between marks. */
export const llama4 = defineFormat({
  name: "llama4",
  detect: (template) =>
    template.includes("<|python_start|>") ||
    (template.includes("<|header_start|>") && template.includes("tools")),
  syntax: {
    sectionOpen: "",
    sectionClose: "",
    callOpen: '{"name": "',
    callClose: "}",
    separator: "\n",
    body: [{ part: "name" }, '", "parameters": ', { part: "arguments" }],
    argumentStyle: { style: "json", itemSeparator: ", ", keySeparator: ": " },
  },
  callOpen: "<|python_start|>",
  callClose: "<|python_end|>",
  reader: byFirstCharacter(
    { "{": (sink) => new ListReader(sink, null) },
    { other: (sink) => new LiteralReader(sink, python), skipped: "[" },
  ),
  bareCalls: {
    ...bareJson,
    "[": byFirstCharacter(
      { "{": (sink, offered) => new ListReader(sink, offered) },
      { other: (sink, offered) => new LiteralReader(sink, python, offered), skipped: "[" },
    ),
  },
  bareSeparator: ";",
});
