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

/** Parameters say whether they are strings, which the grammar's types cannot express. */
function dsml(name: string, section: string): ToolCallFormat {
  return defineFormat({
    name,
    detect: (template) => template.includes("DSML") && template.includes(section),
    syntax: null,
    sectionOpen: `<｜DSML｜${section}>`,
    sectionClose: `</｜DSML｜${section}>`,
    callOpen: '<｜DSML｜invoke name="',
    callClose: "</｜DSML｜invoke>",
    reader: (sink, offered) => new ParameterReader(sink, calls, offered),
  });
}

export const deepseekV32 = dsml("deepseek-v3.2", "function_calls");
export const deepseekV4 = dsml("deepseek-v4", "tool_calls");
