import type { ParameterCalls } from "../readers/parameter-calls.ts";
import { defineFormat } from "../format.ts";
import { ParameterReader } from "../readers/parameter-reader.ts";

const calls: ParameterCalls = {
  nameOpen: "",
  nameEnd: '"',
  keyOpen: '<parameter name="',
  keyClose: '">',
  valueOpen: "",
  valueClose: "</parameter>",
  end: "",
  valueOnLines: false,
  implicitEnds: ["</invoke>", "</minimax:tool_call>"],
  next: '<invoke name="',
};

/** Before every tag of MiniMax M3's calls. */
const mark = "]<]minimax[>[";
const callsOfM3: ParameterCalls = {
  nameOpen: "",
  nameEnd: '"',
  keyOpen: `${mark}<`,
  keyClose: ">",
  valueOpen: "",
  valueClose: `${mark}</$key>`,
  end: "",
  valueOnLines: false,
  elementMark: mark,
  implicitEnds: [`${mark}</invoke>`, `${mark}</tool_call>`],
  next: `${mark}<invoke name="`,
};

/** MiniMax M3: parameters are elements, and so are objects and lists in them; the grammar's are JSON. */
export const minimaxM3 = defineFormat({
  name: "minimax-m3",
  detect: (template) => template.includes(mark),
  syntax: {
    sectionOpen: `${mark}<tool_call>\n`,
    sectionClose: `${mark}</tool_call>`,
    callOpen: `${mark}<invoke name="`,
    callClose: `${mark}</invoke>\n`,
    separator: "",
    body: [{ part: "name" }, '">', { part: "arguments" }],
    argumentStyle: {
      style: "parameters",
      open: callsOfM3.keyOpen,
      middle: callsOfM3.keyClose,
      close: callsOfM3.valueClose,
      separator: "",
      itemSeparator: ", ",
      keySeparator: ": ",
    },
  },
  reader: (sink, offered) => new ParameterReader(sink, callsOfM3, offered),
  reasoning: { open: "<mm:think>", close: "</mm:think>" },
});

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
