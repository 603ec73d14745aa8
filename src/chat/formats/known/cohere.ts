import { type ToolCallFormat, defineFormat } from "../format.ts";
import { ListReader } from "../readers/list-reader.ts";

/** @param text what the answer's markers are called */
function command(
  name: string,
  text: "RESPONSE" | "TEXT",
  detect: (template: string) => boolean,
): ToolCallFormat {
  const [textOpen, textClose] = [`<|START_${text}|>`, `<|END_${text}|>`];
  return defineFormat({
    name,
    detect: (template) => template.includes("<|START_ACTION|>") && detect(template),
    syntax: {
      sectionOpen: "<|START_ACTION|>[\n",
      sectionClose: "\n]<|END_ACTION|>",
      callOpen: '    {"tool_call_id": "',
      callClose: "}",
      separator: ",\n",
      body: [
        { part: "id", pattern: "[0-9]{1,3}" },
        '", "tool_name": "',
        { part: "name" },
        '", "parameters": ',
        { part: "arguments" },
      ],
      argumentStyle: { style: "json", itemSeparator: ", ", keySeparator: ": " },
      textOpen,
      textClose,
    },
    sectionOpen: "",
    sectionClose: "",
    callOpen: "<|START_ACTION|>",
    callClose: "<|END_ACTION|>",
    reader: (sink) => new ListReader(sink, null),
    reasoning: { open: "<|START_THINKING|>", close: "<|END_THINKING|>" },
    silentMarkers: [textOpen, textClose],
  });
}

/** Command A and later. */
export const commandA = command("command-a", "TEXT", (template) =>
  template.includes("<|START_TEXT|>"),
);

/** Command R7B. */
export const commandR7b = command("command-r7b", "RESPONSE", () => true);
