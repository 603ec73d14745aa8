import { type ToolCallFormat, defineFormat } from "../format.ts";
import { bareJson } from "../readers/bare-calls.ts";
import { ListReader } from "../readers/list-reader.ts";

/** MiniMax M1 and Hunyuan A13B: a JSON object a line, or one list of them, in a section. */
export const jsonSection: ToolCallFormat = defineFormat({
  name: "json-section",
  detect: (template) => template.includes("<tool_calls>"),
  syntax: {
    sectionOpen: "<tool_calls>\n",
    sectionClose: "</tool_calls>",
    callOpen: '{"name": "',
    callClose: "}\n",
    separator: "",
    body: [{ part: "name" }, '", "arguments": ', { part: "arguments" }],
    argumentStyle: { style: "json", itemSeparator: ", ", keySeparator: ": " },
  },
  callOpen: "",
  callClose: "",
  reader: (sink, offered) => new ListReader(sink, offered),
  bareCalls: bareJson,
});
