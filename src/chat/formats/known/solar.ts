import { defineFormat } from "../format.ts";
import { NamedReader, asName } from "../readers/named-reader.ts";

/** Solar Open: messages with a header each, and calls with ids. */
export const solar = defineFormat({
  name: "solar-open",
  detect: (template) => template.includes("<|tool_call:begin|>"),
  syntax: {
    sectionOpen: "<|tool_calls|>",
    sectionClose: "",
    callOpen: "<|tool_call:begin|>",
    callClose: "<|tool_call:end|>",
    separator: "",
    body: [
      { part: "id", pattern: "[a-z0-9]{1,16}" },
      "<|tool_call:name|>",
      { part: "name" },
      "<|tool_call:args|>",
      { part: "arguments" },
    ],
    argumentStyle: { style: "json", itemSeparator: ", ", keySeparator: ": " },
    textOpen: "<|content|>",
    afterReasoning: "<|begin|>assistant",
  },
  reader: (sink) =>
    new NamedReader(sink, {
      nameClose: "<|tool_call:args|>",
      nameOf: (header) => asName(header.split("<|tool_call:name|>").at(-1) ?? ""),
    }),
  reasoning: { open: "<|think|>", close: "<|end|>" },
  silentMarkers: ["<|begin|>assistant", "<|content|>", "<|calls|>"],
});
