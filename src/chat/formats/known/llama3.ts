import { defineFormat } from "../format.ts";
import { byFirstCharacter } from "../readers/first-character.ts";
import { ListReader } from "../readers/list-reader.ts";
import { LiteralReader } from "../readers/literal-reader.ts";
import { bareJson } from "../readers/bare-calls.ts";
import { ObjectReader } from "../readers/object-reader.ts";

/** Bare JSON, or after the python tag JSON or Python's own form. */
export const llama3 = defineFormat({
  name: "llama3",
  detect: (template) =>
    template.includes("<|python_tag|>") ||
    (template.includes("<|start_header_id|>") && template.includes('"parameters": ')),
  syntax: {
    sectionOpen: "",
    sectionClose: "",
    callOpen: '{"name": "',
    callClose: "}",
    separator: "; ",
    body: [{ part: "name" }, '", "parameters": ', { part: "arguments" }],
    argumentStyle: { style: "json", itemSeparator: ", ", keySeparator: ": " },
  },
  callOpen: "<|python_tag|>",
  callClose: "",
  reader: byFirstCharacter(
    {
      "{": (sink) => new ObjectReader(sink, null),
      "[": (sink) => new ListReader(sink, null),
    },
    {
      other: (sink) =>
        new LiteralReader(sink, {
          nameOpen: "",
          nameClose: ".call",
          open: "(",
          isList: false,
          stringMarks: ["'", '"'],
          escapes: true,
          assigns: "=",
        }),
    },
  ),
  bareCalls: bareJson,
  bareSeparator: ";",
});
