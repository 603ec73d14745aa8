import { defineFormat } from "../format.ts";
import { NamedReader, asName } from "../readers/named-reader.ts";

/** Functionary v3.1. */
export const functionary = defineFormat({
  name: "functionary-v3.1",
  detect: (template) => template.includes("<function=") && template.includes("<|python_tag|>"),
  syntax: {
    sectionOpen: "",
    sectionClose: "",
    callOpen: "<function=",
    callClose: "</function>",
    separator: "",
    body: [{ part: "name" }, ">", { part: "arguments" }],
    argumentStyle: { style: "json", itemSeparator: ", ", keySeparator: ": " },
  },
  reader: (sink) => new NamedReader(sink, { nameClose: ">", nameOf: asName }),
});
