import { defineFormat } from "../format.ts";
import { bareJson } from "../readers/bare-calls.ts";
import { ObjectReader } from "../readers/object-reader.ts";

/**
 * No form of its own: a JSON object at the start of a line or in a ```json block, and Hermes tags, which
 * many models know whatever their template says.
 */
export const json = defineFormat({
  name: "json",
  detect: () => true,
  syntax: {
    sectionOpen: "",
    sectionClose: "",
    callOpen: '{"name": "',
    callClose: "}",
    separator: "\n",
    body: [{ part: "name" }, '", "arguments": ', { part: "arguments" }],
    argumentStyle: { style: "json", itemSeparator: ", ", keySeparator: ": " },
  },
  callOpen: "<tool_call>",
  callClose: "</tool_call>",
  reader: (sink) => new ObjectReader(sink, null),
  bareCalls: bareJson,
});
