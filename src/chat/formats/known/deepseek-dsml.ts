import { type ToolCallFormat, defineFormat } from "../format.ts";
import { type ParameterCalls, ParameterReader } from "../readers/parameter-reader.ts";

const calls: ParameterCalls = {
  nameOpen: "",
  nameEnd: '"',
  keyOpen: '<｜DSML｜parameter name="',
  keyClose: '">',
  keyAttribute: '" string="',
  valueOpen: "",
  valueClose: "</｜DSML｜parameter>",
  end: "",
  valueOnLines: false,
};

/** Parameters say whether they are strings. */
function dsml(name: string, section: string): ToolCallFormat {
  return defineFormat({
    name,
    detect: (template) => template.includes("DSML") && template.includes(section),
    syntax: {
      sectionOpen: `<｜DSML｜${section}>\n`,
      sectionClose: `</｜DSML｜${section}>`,
      callOpen: '<｜DSML｜invoke name="',
      callClose: "</｜DSML｜invoke>\n",
      separator: "",
      body: [{ part: "name" }, '">\n', { part: "arguments" }],
      argumentStyle: {
        style: "parameters",
        open: calls.keyOpen,
        middle: `${calls.keyAttribute}true${calls.keyClose}`,
        middleOfOthers: `${calls.keyAttribute}false${calls.keyClose}`,
        close: `${calls.valueClose}\n`,
        separator: "",
        itemSeparator: ", ",
        keySeparator: ": ",
      },
    },
    reader: (sink, offered) => new ParameterReader(sink, calls, offered),
  });
}

export const deepseekV32 = dsml("deepseek-v3.2", "function_calls");
export const deepseekV4 = dsml("deepseek-v4", "tool_calls");
