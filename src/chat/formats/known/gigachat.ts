import { defineFormat } from "../format.ts";
import { ObjectReader } from "../readers/object-reader.ts";

/** GigaChat 3 writes a call as a message of its own, 3.1 behind a mark. */
function gigachat(name: string, callOpen: string, detect: (template: string) => boolean) {
  return defineFormat({
    name,
    detect,
    syntax: {
      sectionOpen: "",
      sectionClose: "",
      callOpen,
      callClose: "}",
      separator: "",
      body: ['{"name": "', { part: "name" }, '", "arguments": ', { part: "arguments" }],
      argumentStyle: { style: "json", itemSeparator: ", ", keySeparator: ": " },
    },
    callClose: "",
    reader: (sink) => new ObjectReader(sink, null),
  });
}

export const gigachat3 = gigachat(
  "gigachat-3",
  "<|message_sep|>\n\nfunction call<|role_sep|>\n",
  (template) => template.includes("<|role_sep|>") && template.includes("'function call'"),
);

export const gigachat31 = gigachat("gigachat-3.1", "<|function_call|>", (template) =>
  template.includes("<|function_call|>"),
);
