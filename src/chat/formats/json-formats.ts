/** Formats whose calls are JSON objects with a name and arguments, or lists of them. */

import type { FormatEntry, Pair } from "./format.ts";
import {
  bareCalls,
  byFirstCharacter,
  jsonList,
  jsonObject,
  literals,
  offeredList,
  pythonCalls,
} from "./readers/forms.ts";

const call = '{"name": "$name", "arguments": $arguments}';

/** One list of calls between two markers; `close` may be "". */
function list(open: string, close: string): Pick<FormatEntry, "section" | "body"> {
  return { section: [`${open}[`, `]${close}`], body: call };
}

/** Cohere. @param text what the answer's markers are called */
function command(text: "RESPONSE" | "TEXT"): Omit<FormatEntry, "name" | "template"> {
  const [textOpen, textClose] = [`<|START_${text}|>`, `<|END_${text}|>`];
  return {
    section: ["<|START_ACTION|>[\n", "\n]<|END_ACTION|>"],
    call: ['    {"tool_call_id": "', "}"],
    separator: ",\n",
    body: '$id", "tool_name": "$name", "parameters": $arguments',
    id: "[0-9]{1,3}",
    answer: { textOpen, textClose },
    reader: jsonList,
    reasoning: { open: "<|START_THINKING|>", close: "<|END_THINKING|>" },
    silentMarkers: [textOpen, textClose],
  };
}

/** A bare object, and what else is read as one. */
const bareObject: Pair = ['{"name": "', "}"];

export const jsonFormats: readonly FormatEntry[] = [
  // Command A and later.
  {
    name: "command-a",
    template: [["<|START_ACTION|>", "<|START_TEXT|>"]],
    ...command("TEXT"),
  },
  { name: "command-r7b", template: ["<|START_ACTION|>"], ...command("RESPONSE") },
  // GigaChat 3 writes a call as a message of its own, 3.1 behind a mark.
  {
    name: "gigachat-3",
    template: [["<|role_sep|>", "'function call'"]],
    call: ["<|message_sep|>\n\nfunction call<|role_sep|>\n", "}"],
    body: '{"name": "$name", "arguments": $arguments',
    marks: ["<|message_sep|>\n\nfunction call<|role_sep|>", ""],
    reader: jsonObject,
  },
  {
    name: "gigachat-3.1",
    template: ["<|function_call|>"],
    call: ["<|function_call|>", "}"],
    body: '{"name": "$name", "arguments": $arguments',
    marks: ["<|function_call|>", ""],
    reader: jsonObject,
  },
  // Granite 3, which 3.3's template tells to mark its answer where it thinks. Granite 4 writes as Qwen does.
  {
    name: "granite",
    template: [["<|tool_call|>", "<|start_of_role|>"]],
    ...list("<|tool_call|>", ""),
    separator: ", ",
    reader: jsonList,
    response: ["<response>", "</response>"],
  },
  // Nemotron Nano v2.
  {
    name: "nemotron",
    template: ["<TOOLCALL>"],
    ...list("<TOOLCALL>", "</TOOLCALL>"),
    separator: ", ",
    reader: jsonList,
  },
  // Apriel 1.5 and 1.6.
  {
    name: "apriel",
    template: ["<tool_calls>["],
    ...list("<tool_calls>", "</tool_calls>"),
    separator: ", ",
    reader: jsonList,
    reasoning: { open: "Here are my reasoning steps:", close: "[BEGIN FINAL RESPONSE]" },
    silentMarkers: ["[END FINAL RESPONSE]"],
  },
  // MiniMax M1 and Hunyuan A13B: an object a line, or one list of them, in a section.
  {
    name: "json-section",
    template: ["<tool_calls>"],
    section: ["<tool_calls>\n", "</tool_calls>"],
    call: ['{"name": "', "}\n"],
    body: '$name", "arguments": $arguments',
    marks: ["", ""],
    reader: offeredList,
    bareCalls: bareCalls(),
  },
  // FireFunction v2.
  {
    name: "firefunction",
    template: ["functools["],
    ...list("functools", ""),
    separator: ", ",
    reader: jsonList,
  },
  // Hermes tags, as Qwen, Granite 4 and many others are trained on.
  {
    name: "qwen",
    template: ["<tool_call>"],
    call: ["<tool_call>", "</tool_call>"],
    separator: "\n",
    body: `\n${call}\n`,
    reader: jsonObject,
    bareCalls: bareCalls(),
  },
  // Llama 4: bare JSON as Llama 3, or a list of Python calls, bare or between marks.
  {
    name: "llama4",
    template: ["<|python_start|>", ["<|header_start|>", "tools"]],
    call: bareObject,
    separator: "\n",
    body: '$name", "parameters": $arguments',
    marks: ["<|python_start|>", "<|python_end|>"],
    reader: byFirstCharacter({ "{": jsonList }, { other: literals(pythonCalls()), skipped: "[" }),
    bareCalls: bareCalls(pythonCalls()),
    bareSeparator: ";",
  },
  // Llama 3: bare JSON, or after the python tag JSON or Python's own form.
  {
    name: "llama3",
    template: ["<|python_tag|>", ["<|start_header_id|>", '"parameters": ']],
    call: bareObject,
    separator: "; ",
    body: '$name", "parameters": $arguments',
    marks: ["<|python_tag|>", ""],
    reader: byFirstCharacter(
      { "{": jsonObject, "[": jsonList },
      { other: literals(pythonCalls({ several: null, nameClose: ".call" })) },
    ),
    bareCalls: bareCalls(),
    bareSeparator: ";",
  },
  // No form of its own: bare objects, and Hermes tags, which many models know whatever their template says.
  {
    name: "json",
    template: [""],
    call: bareObject,
    separator: "\n",
    body: '$name", "arguments": $arguments',
    marks: ["<tool_call>", "</tool_call>"],
    reader: jsonObject,
    bareCalls: bareCalls(),
  },
];
