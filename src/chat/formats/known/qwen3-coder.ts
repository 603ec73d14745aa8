import type { ParameterCalls } from "../readers/parameter-calls.ts";
import type { ReasoningMarkers } from "../../template/normalize.ts";
import { type ToolCallFormat, defineFormat } from "../format.ts";
import { byFirstCharacter } from "../readers/first-character.ts";
import { ObjectReader } from "../readers/object-reader.ts";
import { ParameterReader } from "../readers/parameter-reader.ts";

const common: ParameterCalls = {
  nameOpen: "<function=",
  nameEnd: ">",
  keyOpen: "<parameter=",
  keyClose: ">",
  valueOpen: "",
  valueClose: "</parameter>",
  end: "</function>",
  valueOnLines: true,
};

function coder(
  name: string,
  [callOpen, callClose]: readonly [string, string],
  reasoning: ReasoningMarkers,
): ToolCallFormat {
  const calls = { ...common, implicitEnds: [common.end, callClose], next: callOpen };
  return defineFormat({
    name,
    detect: (template) =>
      [callOpen, "<function=", "<parameter="].every((marker) => template.includes(marker)),
    syntax: {
      sectionOpen: "",
      sectionClose: "",
      callOpen,
      callClose,
      separator: "\n",
      body: ["\n<function=", { part: "name" }, ">\n", { part: "arguments" }, "</function>\n"],
      argumentStyle: {
        style: "parameters",
        open: "<parameter=",
        middle: ">\n",
        close: "\n</parameter>\n",
        separator: "",
        itemSeparator: ", ",
        keySeparator: ": ",
      },
    },
    reader: byFirstCharacter(
      { "{": (sink) => new ObjectReader(sink, null) },
      { other: (sink, offered) => new ParameterReader(sink, calls, offered) },
    ),
    unmarked: {
      open: calls.nameOpen,
      reader: (sink, offered) =>
        new ParameterReader(sink, { ...calls, offeredOnly: true }, offered),
    },
    reasoning,
  });
}

/** Parameters in tags on lines of their own: Qwen3-Coder, Qwen3.5, Nemotron 3 Nano, Step 3.5. */
export const qwen3Coder = coder("qwen3-coder", ["<tool_call>", "</tool_call>"], {
  open: "<think>",
  close: "</think>",
});

/** The same in tags of its own. */
export const seedOss = coder("seed-oss", ["<seed:tool_call>", "</seed:tool_call>"], {
  open: "<seed:think>",
  close: "</seed:think>",
});
