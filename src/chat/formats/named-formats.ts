/** Formats that write a call's name and then its arguments in one piece, as JSON or as literals of a language. */

import type { FormatEntry } from "./format.ts";
import {
  byFirstCharacter,
  jsonList,
  listOfNamed,
  literals,
  named,
  pythonCalls,
} from "./readers/forms.ts";

/** What follows the marker tells Mistral's older lists from the names that later models write. */
const mistral: Pick<FormatEntry, "reader" | "reasoning"> = {
  reader: byFirstCharacter(
    { "[": jsonList, "{": jsonList },
    { other: named({ nameClose: "[ARGS]", name: /^(.*?)(?:\[CALL_ID\].*)?$/su }) },
  ),
  reasoning: { open: "[THINK]", close: "[/THINK]" },
};

/** Gemma: `call:name{city:<escape>Rome<escape>}`. */
function gemma(
  [open, close]: readonly [string, string],
  stringMark: string,
): Pick<FormatEntry, "call" | "body" | "arguments" | "reader"> {
  return {
    call: [open, close],
    body: "call:$name$arguments",
    arguments: { style: "bare-keys", stringMark },
    reader: literals({
      nameOpen: "call:",
      nameClose: "",
      open: "{",
      several: null,
      stringMarks: [stringMark],
      escapes: false,
      assigns: ":",
    }),
  };
}

export const namedFormats: readonly FormatEntry[] = [
  // Harmony: channels and recipients in each message's header. A call ends the turn.
  {
    name: "gpt-oss",
    template: [["<|channel|>", "<|message|>"]],
    call: ["<|channel|>commentary to=functions.", ""],
    separator: "<|call|><|start|>assistant",
    body: "$name <|constrain|>json<|message|>$arguments",
    answer: {
      textOpen: "<|channel|>final<|message|>",
      afterReasoning: "<|start|>assistant",
      preamble: { open: "<|channel|>commentary<|message|>", close: "<|end|><|start|>assistant" },
    },
    reader: named({ nameClose: "<|message|>" }),
    reasoning: { open: "<|channel|>analysis<|message|>", close: "<|end|>" },
    usesChannels: true,
    // `<|call|>` and `<|return|>` end the turn: they never become text.
    otherMarkers: ["<|start|>"],
  },
  // Kimi K2. The name stands in an id with a running number.
  {
    name: "kimi-k2",
    template: ["<|tool_calls_section_begin|>"],
    section: ["<|tool_calls_section_begin|>", "<|tool_calls_section_end|>"],
    call: ["<|tool_call_begin|>", "<|tool_call_end|>"],
    body: "functions.$name:$id<|tool_call_argument_begin|>$arguments",
    id: "[0-9]{1,4}",
    reader: named({
      nameClose: "<|tool_call_argument_begin|>",
      name: /^\s*(?:functions\.)?(.*?)(?::\d+)?\s*$/su,
    }),
  },
  // DeepSeek V3 and R1: arguments in a code block.
  {
    name: "deepseek-r1",
    template: [["<｜tool▁calls▁begin｜>", "```json"]],
    section: ["<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>"],
    call: ["<｜tool▁call▁begin｜>", "\n```<｜tool▁call▁end｜>"],
    separator: "\n",
    body: "function<｜tool▁sep｜>$name\n```json\n$arguments",
    marks: ["<｜tool▁call▁begin｜>", "<｜tool▁call▁end｜>"],
    ignoredAfterCall: "}]`",
    reader: named({
      nameClose: "```json",
      name: /^\s*(?:function<｜tool▁sep｜>)?(.*)$/su,
      behind: "`",
    }),
  },
  {
    name: "deepseek-v3.1",
    template: ["<｜tool▁calls▁begin｜>"],
    section: ["<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>"],
    call: ["<｜tool▁call▁begin｜>", "<｜tool▁call▁end｜>"],
    body: "$name<｜tool▁sep｜>$arguments",
    reader: named({ nameClose: "<｜tool▁sep｜>" }),
  },
  // Mistral Small 3.2.
  {
    name: "mistral-small-3.2",
    template: [["[TOOL_CALLS]", "[CALL_ID]"]],
    call: ["[TOOL_CALLS]", ""],
    body: "$name[CALL_ID]$id[ARGS]$arguments",
    id: "[a-zA-Z0-9]{9}",
    ...mistral,
  },
  // Devstral, Magistral, Ministral 3, Mistral Large 3.
  {
    name: "mistral",
    template: [["[TOOL_CALLS]", "[ARGS]"]],
    call: ["[TOOL_CALLS]", ""],
    body: "$name[ARGS]$arguments",
    ...mistral,
  },
  // Mistral 7B v0.3, Nemo, and others before the middle of 2025: one JSON list.
  {
    name: "mistral-nemo",
    template: ["[TOOL_CALLS]"],
    section: ["[TOOL_CALLS][", "]"],
    separator: ", ",
    body: '{"name": "$name", "arguments": $arguments, "id": "$id"}',
    id: "[a-zA-Z0-9]{9}",
    ...mistral,
  },
  {
    name: "function-gemma",
    template: ["<start_function_call>"],
    ...gemma(["<start_function_call>", "<end_function_call>"], "<escape>"),
  },
  {
    name: "gemma-4",
    template: ["<|tool_call>call:"],
    ...gemma(["<|tool_call>", "<tool_call|>"], '<|"|>'),
    reasoning: { open: "<|channel>thought", close: "<channel|>" },
    // A channel that was opened and not named, and the end of one that was not opened.
    silentMarkers: ["<|channel>", "<channel|>"],
  },
  // LFM2 and LFM2.5: a list of Python calls; on request JSON, which is read too.
  {
    name: "lfm2",
    template: ["<|tool_call_start|>", "<|tool_list_start|>", "List of tools: ["],
    section: ["<|tool_call_start|>[", "]<|tool_call_end|>"],
    call: ["", ")"],
    separator: ", ",
    body: "$name($arguments",
    arguments: { style: "python" },
    reader: byFirstCharacter({ "{": jsonList }, { other: literals(pythonCalls()) }),
  },
  // Olmo 3: Python calls, one a line, with values as in JSON.
  {
    name: "olmo-3",
    template: [["<function_calls>", "<functions>"]],
    section: ["<function_calls>", "</function_calls>"],
    call: ["", ")"],
    separator: "\n",
    body: "$name($arguments",
    arguments: { style: "python", words: "json" },
    marks: ["<function_calls>", "</function_calls>"],
    reader: literals(pythonCalls({ several: "lines" })),
  },
  // Solar Open: messages with a header each, and calls with ids.
  {
    name: "solar-open",
    template: ["<|tool_call:begin|>"],
    section: ["<|tool_calls|>", ""],
    call: ["<|tool_call:begin|>", "<|tool_call:end|>"],
    body: "$id<|tool_call:name|>$name<|tool_call:args|>$arguments",
    id: "[a-z0-9]{1,16}",
    answer: { textOpen: "<|content|>", afterReasoning: "<|begin|>assistant" },
    reader: named({
      nameClose: "<|tool_call:args|>",
      name: /^(?:.*<\|tool_call:name\|>)?(.*)$/su,
    }),
    reasoning: { open: "<|think|>", close: "<|end|>" },
    silentMarkers: ["<|begin|>assistant", "<|content|>", "<|end|>", "<|calls|>"],
  },
  // Apertus: a list of objects, each with the tool's name as its only key.
  {
    name: "apertus",
    template: ["<|tools_prefix|>"],
    section: ["<|tools_prefix|>[", "]<|tools_suffix|>"],
    call: ['{"', "}"],
    separator: ", ",
    body: '$name": $arguments',
    reader: listOfNamed({ nameClose: '":', name: /^(?:\s*\{\s*")?(.*)$/su }, "}"),
    reasoning: { open: "<|inner_prefix|>", close: "<|inner_suffix|>" },
  },
  // A call is a message to the tool, as an answer is one to all.
  {
    name: "functionary-v3.2",
    template: [[">>>all", ">>>${recipient}"]],
    separator: ">>>",
    body: "$name\n$arguments",
    answer: { textOpen: "all\n", beforeCall: ">>>" },
    reader: named({ nameClose: "\n" }),
    recipients: { open: "", close: "\n", next: ">>>", text: "all", reasoning: "", ends: [] },
  },
  {
    name: "functionary-v3.1",
    template: [["<function=", "<|python_tag|>"]],
    call: ["<function=", "</function>"],
    body: "$name>$arguments",
    reader: named({ nameClose: ">" }),
  },
];
