import type { CallPart } from "../../../guidance/call-syntax.ts";
import type { ReasoningMarkers } from "../../template/normalize.ts";
import { defineFormat } from "../format.ts";
import { byFirstCharacter } from "../readers/first-character.ts";
import { ListReader } from "../readers/list-reader.ts";
import { NamedReader, asName } from "../readers/named-reader.ts";

const reasoning: ReasoningMarkers = { open: "[THINK]", close: "[/THINK]" };

/** Old and new models are told apart by what follows the marker. */
const reader = byFirstCharacter(
  { "[": (sink) => new ListReader(sink, null), "{": (sink) => new ListReader(sink, null) },
  {
    other: (sink) =>
      new NamedReader(sink, {
        nameClose: "[ARGS]",
        nameOf: (header) => asName(header.split("[CALL_ID]", 1)[0] ?? ""),
      }),
  },
);

function named(name: string, id: readonly CallPart[], detect: (template: string) => boolean) {
  return defineFormat({
    name,
    detect,
    syntax: {
      sectionOpen: "",
      sectionClose: "",
      callOpen: "[TOOL_CALLS]",
      callClose: "",
      separator: "",
      body: [{ part: "name" }, ...id, "[ARGS]", { part: "arguments" }],
      argumentStyle: { style: "json", itemSeparator: ", ", keySeparator: ": " },
    },
    reader,
    reasoning,
  });
}

/** Devstral, Magistral, Ministral 3, Mistral Large 3. */
export const mistral = named(
  "mistral",
  [],
  (template) => template.includes("[TOOL_CALLS]") && template.includes("[ARGS]"),
);

/** Mistral Small 3.2. */
export const mistralIds = named(
  "mistral-small-3.2",
  ["[CALL_ID]", { part: "id", pattern: "[a-zA-Z0-9]{9}" }],
  (template) => template.includes("[TOOL_CALLS]") && template.includes("[CALL_ID]"),
);

/** Mistral 7B v0.3, Nemo, and others before the middle of 2025: one JSON list. */
export const mistralList = defineFormat({
  name: "mistral-nemo",
  detect: (template) => template.includes("[TOOL_CALLS]"),
  syntax: {
    sectionOpen: "[TOOL_CALLS][",
    sectionClose: "]",
    callOpen: "",
    callClose: "",
    separator: ", ",
    body: [
      '{"name": "',
      { part: "name" },
      '", "arguments": ',
      { part: "arguments" },
      ', "id": "',
      { part: "id", pattern: "[a-zA-Z0-9]{9}" },
      '"}',
    ],
    argumentStyle: { style: "json", itemSeparator: ", ", keySeparator: ": " },
  },
  sectionOpen: "",
  sectionClose: "",
  callOpen: "[TOOL_CALLS]",
  reader,
  reasoning,
});
