import { defineFormat } from "../format.ts";
import { ListReader } from "../readers/list-reader.ts";

/** Granite 3: one JSON list after a marker. Granite 4 writes as Qwen does. */
export const granite = defineFormat({
  name: "granite",
  detect: (template) =>
    template.includes("<|tool_call|>") && template.includes("<|start_of_role|>"),
  syntax: {
    sectionOpen: "<|tool_call|>[",
    sectionClose: "]",
    callOpen: "",
    callClose: "",
    separator: ", ",
    body: ['{"name": "', { part: "name" }, '", "arguments": ', { part: "arguments" }, "}"],
    argumentStyle: { style: "json", itemSeparator: ", ", keySeparator: ": " },
  },
  sectionOpen: "",
  sectionClose: "",
  callOpen: "<|tool_call|>",
  reader: (sink) => new ListReader(sink, null),
});
