import { hermesCalls } from "../../../guidance/call-syntax.ts";
import { defineFormat } from "../format.ts";
import { ObjectReader } from "../readers/object-reader.ts";

/** Hermes tags, as Qwen, Granite 4 and many others are trained on. */
export const qwen = defineFormat({
  name: "qwen",
  // MiniMax M3 writes a form of its own between the same tags.
  detect: (template) => template.includes("<tool_call>") && !template.includes("]<]minimax[>["),
  syntax: hermesCalls,
  reader: (sink) => new ObjectReader(sink, null),
  bareCalls: true,
});
