import type { ParameterCalls } from "../readers/parameter-calls.ts";
import { defineFormat } from "../format.ts";
import { ParameterReader } from "../readers/parameter-reader.ts";

const calls: ParameterCalls = {
  nameOpen: "",
  nameEnd: '"',
  keyOpen: '<param name="',
  keyClose: '">',
  valueOpen: "",
  valueClose: "</param>",
  end: "",
  valueOnLines: false,
  hasCdata: true,
  implicitEnds: ["</function>"],
  next: '<function name="',
};

/** MiniCPM 5. Strings with markup in them stand in CDATA, which the grammar's strings do without. */
export const minicpm5 = defineFormat({
  name: "minicpm5",
  detect: (template) => template.includes('<function name="') && template.includes('<param name="'),
  syntax: {
    sectionOpen: "",
    sectionClose: "",
    callOpen: '<function name="',
    callClose: "</function>",
    separator: "",
    body: [{ part: "name" }, '">', { part: "arguments" }],
    argumentStyle: {
      style: "parameters",
      open: calls.keyOpen,
      middle: calls.keyClose,
      close: calls.valueClose,
      separator: "",
      itemSeparator: ", ",
      keySeparator: ": ",
    },
  },
  reader: (sink, offered) => new ParameterReader(sink, calls, offered),
});
