import type { ParameterCalls } from "../readers/parameter-calls.ts";
import { defineFormat } from "../format.ts";
import { ParameterReader } from "../readers/parameter-reader.ts";

const open = (tag: string): string => `<|open|>${tag}<|sep|>`;
const close = (tag: string): string => `<|close|>${tag}<|sep|>`;

const calls: ParameterCalls = {
  nameOpen: "",
  nameEnd: '"',
  keyOpen: '<|open|>argument key="',
  keyClose: '"<|sep|>',
  keyAttribute: { open: '" type="', string: "string" },
  valueOpen: "",
  valueClose: close("argument"),
  end: "",
  valueOnLines: false,
  implicitEnds: [close("call"), close("tools"), close("message")],
  next: '<|open|>call tool="',
};

/** Kimi K3: everything between tags of three tokens. */
export const kimiK3 = defineFormat({
  name: "kimi-k3",
  detect: (template) => template.includes("<|open|>") && template.includes("<|sep|>"),
  syntax: {
    sectionOpen: open("tools"),
    sectionClose: close("tools"),
    callOpen: '<|open|>call tool="',
    callClose: close("call"),
    separator: "",
    body: [
      { part: "name" },
      '" index="',
      { part: "id", pattern: "[0-9]{1,3}" },
      '"<|sep|>',
      { part: "arguments" },
    ],
    argumentStyle: {
      style: "parameters",
      open: calls.keyOpen,
      middle: '" type="string"<|sep|>',
      middleOfOthers: Object.fromEntries(
        ["number", "boolean", "null", "object", "array"].map((type) => [
          type,
          `" type="${type}"<|sep|>`,
        ]),
      ),
      close: calls.valueClose,
      separator: "",
      itemSeparator: ", ",
      keySeparator: ": ",
    },
    textOpen: open("response"),
    textClose: close("response"),
  },
  reader: (sink, offered) => new ParameterReader(sink, calls, offered),
  reasoning: { open: open("think"), close: close("think") },
  reasoningHint: "open_tag('think')",
  silentMarkers: [open("response"), close("response"), close("message")],
});
