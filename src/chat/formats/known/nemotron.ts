import { defineFormat } from "../format.ts";
import { ListReader } from "../readers/list-reader.ts";

/** Nemotron Nano v2: one JSON list in tags. */
export const nemotron = defineFormat({
  name: "nemotron",
  detect: (template) => template.includes("<TOOLCALL>"),
  syntax: {
    sectionOpen: "<TOOLCALL>[",
    sectionClose: "]</TOOLCALL>",
    callOpen: "",
    callClose: "",
    separator: ", ",
    body: ['{"name": "', { part: "name" }, '", "arguments": ', { part: "arguments" }, "}"],
    argumentStyle: { style: "json", itemSeparator: ", ", keySeparator: ": " },
  },
  sectionOpen: "",
  sectionClose: "",
  callOpen: "<TOOLCALL>",
  callClose: "</TOOLCALL>",
  reader: (sink) => new ListReader(sink, null),
});
