import { defineFormat } from "../format.ts";
import { type ParameterCalls, ParameterReader } from "../readers/parameter-reader.ts";

const calls: ParameterCalls = {
  nameOpen: "",
  nameEnd: '"',
  keyOpen: '<parameter name="',
  keyClose: '">',
  valueOpen: "",
  valueClose: "</parameter>",
  end: "",
  valueOnLines: false,
};

/** MiniMax M2. */
export const minimax = defineFormat({
  name: "minimax",
  detect: (template) =>
    template.includes("<minimax:tool_call>") || template.includes("minimax:tool_call"),
  syntax: {
    sectionOpen: "<minimax:tool_call>\n",
    sectionClose: "</minimax:tool_call>",
    callOpen: '<invoke name="',
    callClose: "</invoke>\n",
    separator: "",
    body: [{ part: "name" }, '">\n', { part: "arguments" }],
    argumentStyle: {
      style: "parameters",
      open: '<parameter name="',
      middle: '">',
      close: "</parameter>\n",
      separator: "",
      itemSeparator: ", ",
      keySeparator: ": ",
    },
  },
  reader: (sink, offered) => new ParameterReader(sink, calls, offered),
});
