import { defineFormat } from "../format.ts";
import { NamedReader } from "../readers/named-reader.ts";

/** Harmony: channels and recipients in each message's header. A call ends the turn. */
export const gptOss = defineFormat({
  name: "gpt-oss",
  detect: (template) => template.includes("<|channel|>") && template.includes("<|message|>"),
  syntax: {
    sectionOpen: "",
    sectionClose: "",
    callOpen: "<|channel|>commentary to=functions.",
    callClose: "",
    separator: "<|call|><|start|>assistant",
    body: [{ part: "name" }, " <|constrain|>json<|message|>", { part: "arguments" }],
    argumentStyle: { style: "json", itemSeparator: ", ", keySeparator: ": " },
    textOpen: "<|channel|>final<|message|>",
    afterReasoning: "<|start|>assistant",
    preamble: { open: "<|channel|>commentary<|message|>", close: "<|end|><|start|>assistant" },
  },
  callClose: "",
  reader: (sink) => new NamedReader(sink, { nameClose: "<|message|>", nameOf: (name) => name }),
  reasoning: { open: "<|channel|>analysis<|message|>", close: "<|end|>" },
  usesChannels: true,
  // `<|call|>` and `<|return|>` end the turn: they never become text.
  otherMarkers: ["<|start|>"],
});
