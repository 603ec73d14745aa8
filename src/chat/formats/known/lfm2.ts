import { defineFormat } from "../format.ts";
import { byFirstCharacter } from "../readers/first-character.ts";
import { ListReader } from "../readers/list-reader.ts";
import { LiteralReader } from "../readers/literal-reader.ts";
import type { MakeReader } from "../readers/reader.ts";

const pythonCalls: MakeReader = (sink) =>
  new LiteralReader(sink, {
    nameOpen: "",
    nameClose: "",
    open: "(",
    isList: true,
    stringMarks: ["'", '"'],
    escapes: true,
    assigns: "=",
  });

/** LFM2 and LFM2.5: a list of Python calls; on request JSON, which is read too. */
export const lfm2 = defineFormat({
  name: "lfm2",
  detect: (template) =>
    template.includes("<|tool_call_start|>") ||
    template.includes("<|tool_list_start|>") ||
    template.includes("List of tools: ["),
  syntax: {
    sectionOpen: "<|tool_call_start|>[",
    sectionClose: "]<|tool_call_end|>",
    callOpen: "",
    callClose: ")",
    separator: ", ",
    body: [{ part: "name" }, "(", { part: "arguments" }],
    argumentStyle: { style: "python" },
  },
  sectionOpen: "",
  sectionClose: "",
  callOpen: "<|tool_call_start|>",
  callClose: "<|tool_call_end|>",
  reader: byFirstCharacter({ "{": (sink) => new ListReader(sink, null) }, { other: pythonCalls }),
});
