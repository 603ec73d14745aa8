/** Formats that write each argument between markers. */

import type { FormatEntry, Pair } from "./format.ts";

/** DeepSeek: parameters say whether they are strings. @param space between the mark and a tag's name */
function dsml(section: string, space: "" | " "): Omit<FormatEntry, "name" | "template"> {
  const tag = `｜DSML｜${space}`;
  return {
    section: [`<${tag}${section}>\n`, `</${tag}${section}>`],
    call: [`<${tag}invoke name="`, `</${tag}invoke>\n`],
    body: '$name">\n$arguments',
    parameters: {
      key: [`<${tag}parameter name="`, '">'],
      type: { open: '" string="', string: "true", others: "false" },
      value: ["", `</${tag}parameter>`],
      after: "\n",
    },
  };
}

/** GLM. @param line what stands between the parts: GLM 4.5 and 4.6 write line breaks, GLM 4.7 nothing */
function glm(line: "" | "\n"): Omit<FormatEntry, "name" | "template"> {
  return {
    call: ["<tool_call>", "</tool_call>"],
    separator: line,
    body: `$name${line}$arguments`,
    parameters: {
      key: ["<arg_key>", "</arg_key>"],
      value: ["<arg_value>", "</arg_value>"],
      between: line,
      after: line,
    },
    // End the turns of models that write this form.
    silentMarkers: ["<|role_end|>", "<|observation|>", "<|user|>"],
  };
}

/** Parameters in tags. @param onLines their values stand on lines of their own */
function coder(call: Pair, reasoning: Pair, onLines: boolean): Omit<FormatEntry, "name"> {
  return {
    template: [[call[0], "<function=", "<parameter="]],
    call,
    separator: "\n",
    // Step 3.5.
    mayLackSeparator: true,
    body: "\n<function=$name>\n$arguments</function>\n",
    parameters: {
      key: ["<parameter=", ">"],
      value: ["", "</parameter>"],
      onLines,
      after: "\n",
    },
    reasoning: { open: reasoning[0], close: reasoning[1] },
  };
}

/** Kimi K3's tags. */
const open = (tag: string): string => `<|open|>${tag}<|sep|>`;
const close = (tag: string): string => `<|close|>${tag}<|sep|>`;

/** Before every tag of MiniMax M3's calls. */
const mark = "]<]minimax[>[";

export const parameterFormats: readonly FormatEntry[] = [
  // Muse Glimmer: a call is a message to the tool.
  {
    name: "muse-glimmer",
    template: [["<atem:function_calls>", "<|eom|>"]],
    call: [" to=", "\n</atem:function_calls>"],
    separator: "<|eom|><|start|>assistant",
    body: '$name<|message|><atem:function_calls>\n<atem:invoke name="$name">\n$arguments</atem:invoke>',
    parameters: {
      key: ['<atem:parameter name="', '">'],
      value: ["", "</atem:parameter>"],
      after: "\n",
    },
    marks: ["", ""],
    answer: {
      textOpen: " to=user<|message|>",
      afterReasoning: "<|start|>assistant",
      beforeCall: "<|eom|><|start|>assistant",
    },
    reasoning: { open: " to=self<|message|>", close: "<|eom|>" },
    recipients: {
      open: " to=",
      close: "<|message|>",
      next: "<|start|>assistant",
      text: "user",
      reasoning: "self",
      ends: ["<|eom|>", "<|eot|>"],
    },
    otherMarkers: ["<|start|>", "<|message|>", "<|eom|>", "<|eot|>"],
  },
  // Everything between tags of three tokens.
  {
    name: "kimi-k3",
    template: [["<|open|>", "<|sep|>"]],
    section: [open("tools"), close("tools")],
    call: ['<|open|>call tool="', close("call")],
    body: '$name" index="$id"<|sep|>$arguments',
    id: "[0-9]{1,3}",
    parameters: {
      key: ['<|open|>argument key="', '"<|sep|>'],
      type: { open: '" type="', string: "string", others: "its name" },
      value: ["", close("argument")],
      ends: [close("message")],
    },
    answer: { textOpen: open("response"), textClose: close("response") },
    reasoning: { open: open("think"), close: close("think") },
    reasoningHint: "open_tag('think')",
    silentMarkers: [open("response"), close("response"), close("message")],
  },
  // A blank after the mark, and a shorter section.
  {
    name: "deepseek-v4.1",
    template: [
      ["DSML", "｜ calls>"],
      ["DSML", "~ ' calls>'"],
    ],
    ...dsml("calls", " "),
  },
  {
    name: "deepseek-v3.2",
    template: [["DSML", "function_calls"]],
    ...dsml("function_calls", ""),
  },
  { name: "deepseek-v4", template: [["DSML", "tool_calls"]], ...dsml("tool_calls", "") },
  // Parameters are elements, and so are objects and lists in them; the grammar's are JSON.
  {
    name: "minimax-m3",
    template: [mark],
    section: [`${mark}<tool_call>\n`, `${mark}</tool_call>`],
    call: [`${mark}<invoke name="`, `${mark}</invoke>\n`],
    body: '$name">$arguments',
    parameters: {
      key: [`${mark}<`, ">"],
      value: ["", `${mark}</$key>`],
      elementMark: mark,
    },
    reasoning: { open: "<mm:think>", close: "</mm:think>" },
  },
  // MiniMax M2.
  {
    name: "minimax",
    template: ["minimax:tool_call"],
    section: ["<minimax:tool_call>\n", "</minimax:tool_call>"],
    call: ['<invoke name="', "</invoke>\n"],
    body: '$name">\n$arguments',
    parameters: {
      key: ['<parameter name="', '">'],
      value: ["", "</parameter>"],
      after: "\n",
    },
  },
  // GLM 4.5 and 4.6, Ling 3.0, Laguna XS: what their templates say of calls tells them from later ones.
  {
    name: "glm-4.5",
    template: [
      ["<arg_key>", "<tool_call>{function-name}\n"],
      ["<arg_key>", "<tool_call>{function-name}\\n"],
      ["<arg_key>", "<tool_call>function-name\\n"],
    ],
    ...glm("\n"),
  },
  // GLM 4.7 and 5, Spark 2.5, Laguna S.
  { name: "glm-4.7", template: [["<arg_key>", "<tool_call>"]], ...glm("") },
  {
    name: "seed-oss",
    ...coder(["<seed:tool_call>", "</seed:tool_call>"], ["<seed:think>", "</seed:think>"], false),
  },
  // Qwen3-Coder, Qwen3.5, Nemotron 3 Nano, Step 3.5.
  {
    name: "qwen3-coder",
    ...coder(["<tool_call>", "</tool_call>"], ["<think>", "</think>"], true),
  },
  // Strings with markup in them stand in CDATA.
  {
    name: "minicpm5",
    template: [['<function name="', '<param name="']],
    call: ['<function name="', "</function>"],
    body: '$name">$arguments',
    parameters: {
      key: ['<param name="', '">'],
      value: ["", "</param>"],
      hasCdata: true,
    },
  },
  // Hunyuan 3, whose markers are GLM's with a suffix, which the template puts on by itself.
  {
    name: "hunyuan-3",
    template: [["<tool_sep{}>", ":opensource"]],
    section: ["<tool_calls:opensource>\n", "</tool_calls:opensource>"],
    call: ["<tool_call:opensource>", "</tool_call:opensource>\n"],
    body: "$name<tool_sep:opensource>\n$arguments",
    parameters: {
      key: ["<arg_key:opensource>", "</arg_key:opensource>"],
      value: ["<arg_value:opensource>", "</arg_value:opensource>"],
      between: "\n",
      after: "\n",
    },
    reasoning: { open: "<think:opensource>", close: "</think:opensource>" },
  },
];
