import type { CallSyntax } from "../../../guidance/call-syntax.ts";
import { defineFormat } from "../format.ts";
import { NamedReader, asName } from "../readers/named-reader.ts";

const markers: Pick<CallSyntax, "sectionOpen" | "sectionClose" | "callOpen" | "argumentStyle"> = {
  sectionOpen: "<｜tool▁calls▁begin｜>",
  sectionClose: "<｜tool▁calls▁end｜>",
  callOpen: "<｜tool▁call▁begin｜>",
  argumentStyle: { style: "json", itemSeparator: ", ", keySeparator: ": " },
};

/** DeepSeek V3.1. */
export const deepseek = defineFormat({
  name: "deepseek-v3.1",
  detect: (template) => template.includes(markers.sectionOpen),
  syntax: {
    ...markers,
    callClose: "<｜tool▁call▁end｜>",
    separator: "",
    body: [{ part: "name" }, "<｜tool▁sep｜>", { part: "arguments" }],
  },
  reader: (sink) => new NamedReader(sink, { nameClose: "<｜tool▁sep｜>", nameOf: asName }),
});

/** DeepSeek V3 and R1: arguments in a code block. */
export const deepseekBlocks = defineFormat({
  name: "deepseek-r1",
  detect: (template) => template.includes(markers.sectionOpen) && template.includes("```json"),
  syntax: {
    ...markers,
    callClose: "\n```<｜tool▁call▁end｜>",
    separator: "\n",
    body: ["function<｜tool▁sep｜>", { part: "name" }, "\n```json\n", { part: "arguments" }],
  },
  callClose: "<｜tool▁call▁end｜>",
  ignoredAfterCall: "}]`",
  reader: (sink) =>
    new NamedReader(sink, {
      nameClose: "```json",
      behind: "`",
      nameOf: (header) => asName(header.replace(/^\s*function<｜tool▁sep｜>/u, "")),
    }),
});
