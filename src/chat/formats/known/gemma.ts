import type { CallSyntax } from "../../../guidance/call-syntax.ts";
import { type ToolCallFormat, defineFormat } from "../format.ts";
import { LiteralReader } from "../readers/literal-reader.ts";

function gemma(
  options: Pick<ToolCallFormat, "name" | "detect"> &
    Partial<Pick<ToolCallFormat, "reasoning" | "silentMarkers">> &
    Pick<CallSyntax, "callOpen" | "callClose"> & { stringMark: string },
): ToolCallFormat {
  const { name, detect, callOpen, callClose, stringMark, ...more } = options;
  return defineFormat({
    name,
    detect,
    syntax: {
      sectionOpen: "",
      sectionClose: "",
      callOpen,
      callClose,
      separator: "",
      body: ["call:", { part: "name" }, { part: "arguments" }],
      argumentStyle: { style: "bare-keys", stringMark },
    },
    ...more,
    reader: (sink) =>
      new LiteralReader(sink, {
        nameOpen: "call:",
        nameClose: "",
        open: "{",
        isList: false,
        stringMarks: [stringMark],
        escapes: false,
        assigns: ":",
      }),
  });
}

export const functionGemma = gemma({
  name: "function-gemma",
  detect: (template) => template.includes("<start_function_call>"),
  callOpen: "<start_function_call>",
  callClose: "<end_function_call>",
  stringMark: "<escape>",
});

export const gemma4 = gemma({
  name: "gemma-4",
  detect: (template) => template.includes("<|tool_call>call:"),
  callOpen: "<|tool_call>",
  callClose: "<tool_call|>",
  stringMark: '<|"|>',
  reasoning: { open: "<|channel>thought", close: "<channel|>" },
  // A channel that was opened and not named.
  silentMarkers: ["<|channel>"],
});
