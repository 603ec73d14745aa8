import { type ToolCallFormat, defineFormat } from "../format.ts";
import { ListReader } from "../readers/list-reader.ts";

/** One JSON list of calls between two markers; `close` may be "". */
function list(
  name: string,
  { open, close }: { open: string; close: string },
  detect: (template: string) => boolean,
  more: Partial<Pick<ToolCallFormat, "reasoning" | "silentMarkers">> = {},
): ToolCallFormat {
  return defineFormat({
    ...more,
    name,
    detect,
    syntax: {
      sectionOpen: `${open}[`,
      sectionClose: `]${close}`,
      callOpen: "",
      callClose: "",
      separator: ", ",
      body: ['{"name": "', { part: "name" }, '", "arguments": ', { part: "arguments" }, "}"],
      argumentStyle: { style: "json", itemSeparator: ", ", keySeparator: ": " },
    },
    sectionOpen: "",
    sectionClose: "",
    callOpen: open,
    callClose: close,
    reader: (sink) => new ListReader(sink, null),
  });
}

/** Granite 3. Granite 4 writes as Qwen does. */
export const granite = list(
  "granite",
  { open: "<|tool_call|>", close: "" },
  (template) => template.includes("<|tool_call|>") && template.includes("<|start_of_role|>"),
);

/** Nemotron Nano v2. */
export const nemotron = list("nemotron", { open: "<TOOLCALL>", close: "</TOOLCALL>" }, (template) =>
  template.includes("<TOOLCALL>"),
);

/** Apriel 1.5 and 1.6. */
export const apriel = list(
  "apriel",
  { open: "<tool_calls>", close: "</tool_calls>" },
  (template) => template.includes("<tool_calls>["),
  {
    reasoning: { open: "Here are my reasoning steps:", close: "[BEGIN FINAL RESPONSE]" },
    silentMarkers: ["[END FINAL RESPONSE]"],
  },
);

/** FireFunction v2. */
export const firefunction = list("firefunction", { open: "functools", close: "" }, (template) =>
  template.includes("functools["),
);
