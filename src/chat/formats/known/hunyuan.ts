import type { ParameterCalls } from "../readers/parameter-calls.ts";
import { defineFormat } from "../format.ts";
import { ParameterReader } from "../readers/parameter-reader.ts";

const calls: ParameterCalls = {
  nameOpen: "",
  nameEnd: "\n<",
  keyOpen: "<arg_key:opensource>",
  keyClose: "</arg_key:opensource>",
  valueOpen: "<arg_value:opensource>",
  valueClose: "</arg_value:opensource>",
  end: "",
  valueOnLines: false,
  implicitEnds: ["</tool_call:opensource>", "</tool_calls:opensource>"],
  next: "<tool_call:opensource>",
};

/** Hunyuan 3, whose markers are GLM's with a suffix. */
export const hunyuan = defineFormat({
  name: "hunyuan-3",
  // The template puts the suffix on by itself.
  detect: (template) => template.includes("<tool_sep{}>") && template.includes(":opensource"),
  syntax: {
    sectionOpen: "<tool_calls:opensource>\n",
    sectionClose: "</tool_calls:opensource>",
    callOpen: "<tool_call:opensource>",
    callClose: "</tool_call:opensource>\n",
    separator: "",
    body: [{ part: "name" }, "<tool_sep:opensource>\n", { part: "arguments" }],
    argumentStyle: {
      style: "parameters",
      open: calls.keyOpen,
      middle: `${calls.keyClose}\n${calls.valueOpen}`,
      close: `${calls.valueClose}\n`,
      separator: "",
      itemSeparator: ", ",
      keySeparator: ": ",
    },
  },
  reader: (sink, offered) => new ParameterReader(sink, calls, offered),
  reasoning: { open: "<think:opensource>", close: "</think:opensource>" },
});
