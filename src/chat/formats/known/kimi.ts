import { defineFormat } from "../format.ts";
import { NamedReader, asName } from "../readers/named-reader.ts";

/** Kimi K2. The name stands in an id with a running number. */
export const kimi = defineFormat({
  name: "kimi-k2",
  detect: (template) => template.includes("<|tool_calls_section_begin|>"),
  syntax: {
    sectionOpen: "<|tool_calls_section_begin|>",
    sectionClose: "<|tool_calls_section_end|>",
    callOpen: "<|tool_call_begin|>",
    callClose: "<|tool_call_end|>",
    separator: "",
    body: [
      "functions.",
      { part: "name" },
      ":",
      { part: "id", pattern: "[0-9]{1,4}" },
      "<|tool_call_argument_begin|>",
      { part: "arguments" },
    ],
    argumentStyle: { style: "json", itemSeparator: ", ", keySeparator: ": " },
  },
  reader: (sink) =>
    new NamedReader(sink, {
      nameClose: "<|tool_call_argument_begin|>",
      nameOf: (header) =>
        asName(
          header
            .trim()
            .replace(/^functions\./u, "")
            .replace(/:\d+$/u, ""),
        ),
    }),
});
