import type { ParameterCalls } from "../readers/parameter-calls.ts";
import type { CallSyntax } from "../../../guidance/call-syntax.ts";
import { defineFormat } from "../format.ts";
import { byFirstCharacter } from "../readers/first-character.ts";
import { ObjectReader } from "../readers/object-reader.ts";
import { ParameterReader } from "../readers/parameter-reader.ts";
import type { MakeReader } from "../readers/reader.ts";

const calls: ParameterCalls = {
  nameOpen: "",
  nameEnd: "\n<",
  keyOpen: "<arg_key>",
  keyClose: "</arg_key>",
  valueOpen: "<arg_value>",
  valueClose: "</arg_value>",
  end: "",
  valueOnLines: false,
  implicitEnds: ["</tool_call>"],
  next: "<tool_call>",
};

/** @param line what stands between the parts: GLM 4.5 and 4.6 write line breaks, GLM 4.7 nothing */
function syntax(line: string): CallSyntax {
  return {
    sectionOpen: "",
    sectionClose: "",
    callOpen: "<tool_call>",
    callClose: "</tool_call>",
    separator: line,
    body: [{ part: "name" }, line, { part: "arguments" }],
    argumentStyle: {
      style: "parameters",
      open: "<arg_key>",
      middle: `</arg_key>${line}<arg_value>`,
      close: `</arg_value>${line}`,
      separator: "",
      itemSeparator: ", ",
      keySeparator: ": ",
    },
  };
}

const reader: MakeReader = byFirstCharacter(
  { "{": (sink) => new ObjectReader(sink, null) },
  { other: (sink, offered) => new ParameterReader(sink, calls, offered) },
);

function hasArgumentTags(template: string): boolean {
  return template.includes("<arg_key>") && template.includes("<tool_call>");
}

/** End the turns of models that write this form. */
const silentMarkers = ["<|role_end|>", "<|observation|>", "<|user|>"];

/** GLM 4.5 and 4.6. */
export const glm = defineFormat({
  name: "glm-4.5",
  detect: (template) =>
    hasArgumentTags(template) && template.includes("<tool_call>{function-name}\n"),
  syntax: syntax("\n"),
  reader,
  silentMarkers,
});

/** GLM 4.7 and 5. */
export const glm47 = defineFormat({
  name: "glm-4.7",
  detect: hasArgumentTags,
  syntax: syntax(""),
  reader,
  silentMarkers,
});
