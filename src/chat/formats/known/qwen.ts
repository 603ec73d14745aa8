import { hermesCalls } from "../../../guidance/call-syntax.ts";
import { defineFormat } from "../format.ts";
import { bareJson } from "../readers/bare-calls.ts";
import { ObjectReader } from "../readers/object-reader.ts";

/** Hermes tags, as Qwen, Granite 4 and many others are trained on. */
export const qwen = defineFormat({
  name: "qwen",
  detect: (template) => template.includes("<tool_call>"),
  syntax: hermesCalls,
  reader: (sink) => new ObjectReader(sink, null),
  bareCalls: bareJson,
});
