import type { ParameterCalls } from "../readers/parameter-calls.ts";
import { type ToolCallFormat, defineFormat } from "../format.ts";
import { ParameterReader } from "../readers/parameter-reader.ts";

/**
 * Parameters say whether they are strings.
 * @param space what stands between the mark and a tag's name
 */
function dsml(
  name: string,
  section: string,
  space: "" | " ",
  detect: (template: string) => boolean,
): ToolCallFormat {
  const tag = `｜DSML｜${space}`;
  const calls: ParameterCalls = {
    nameOpen: "",
    nameEnd: '"',
    keyOpen: `<${tag}parameter name="`,
    keyClose: '">',
    keyAttribute: { open: '" string="', string: "true" },
    valueOpen: "",
    valueClose: `</${tag}parameter>`,
    end: "",
    valueOnLines: false,
    implicitEnds: [`</${tag}invoke>`, `</${tag}${section}>`],
    next: `<${tag}invoke name="`,
  };
  const middle = (isString: boolean): string => `" string="${isString}${calls.keyClose}`;
  return defineFormat({
    name,
    detect: (template) => template.includes("DSML") && detect(template),
    syntax: {
      sectionOpen: `<${tag}${section}>\n`,
      sectionClose: `</${tag}${section}>`,
      callOpen: `<${tag}invoke name="`,
      callClose: `</${tag}invoke>\n`,
      separator: "",
      body: [{ part: "name" }, '">\n', { part: "arguments" }],
      argumentStyle: {
        style: "parameters",
        open: calls.keyOpen,
        middle: middle(true),
        middleOfOthers: middle(false),
        close: `${calls.valueClose}\n`,
        separator: "",
        itemSeparator: ", ",
        keySeparator: ": ",
      },
    },
    reader: (sink, offered) => new ParameterReader(sink, calls, offered),
  });
}

export const deepseekV32 = dsml("deepseek-v3.2", "function_calls", "", (template) =>
  template.includes("function_calls"),
);
export const deepseekV4 = dsml("deepseek-v4", "tool_calls", "", (template) =>
  template.includes("tool_calls"),
);
/** A blank after the mark, and a shorter section. */
export const deepseekV41 = dsml(
  "deepseek-v4.1",
  "calls",
  " ",
  (template) => template.includes("｜ calls>") || template.includes("~ ' calls>'"),
);
