import { defineFormat } from "../format.ts";
import { ListReader } from "../readers/list-reader.ts";
import { NamedReader, asName } from "../readers/named-reader.ts";

/** Apertus: a list of objects, each with the tool's name as its only key. */
export const apertus = defineFormat({
  name: "apertus",
  detect: (template) => template.includes("<|tools_prefix|>"),
  syntax: {
    sectionOpen: "<|tools_prefix|>[",
    sectionClose: "]<|tools_suffix|>",
    callOpen: '{"',
    callClose: "}",
    separator: ", ",
    body: [{ part: "name" }, '": ', { part: "arguments" }],
    argumentStyle: { style: "json", itemSeparator: ", ", keySeparator: ": " },
  },
  sectionOpen: "",
  sectionClose: "",
  callOpen: "<|tools_prefix|>",
  callClose: "<|tools_suffix|>",
  reader: (sink) =>
    new ListReader(sink, null, {
      item: () =>
        new NamedReader(sink, {
          nameClose: '":',
          nameOf: (header) => asName(header.replace(/^\s*\{\s*"/u, "")),
        }),
      ignored: "}",
    }),
  reasoning: { open: "<|inner_prefix|>", close: "<|inner_suffix|>" },
});
