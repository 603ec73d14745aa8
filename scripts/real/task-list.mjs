// 30 tasks that a person could give: the words, the tools, and what a right answer says or does.
import { existsSync } from "node:fs";
import { join } from "node:path";
import { taskFolder as folder, textOf } from "./task-folder.mjs";

/** The tools of a request, as `tools` of /v1/responses has them. */
const server = (label, ...names) => [
  {
    type: "mcp",
    server_label: label,
    require_approval: "never",
    ...(names.length > 0 && { allowed_tools: names }),
  },
];

const allFiles = server("files");
const fewFiles = server("files", "list_directory", "read_text_file", "write_file");
const everything = server("everything", "echo", "get-sum", "get-structured-content");
const memory = server("memory", "create_entities", "search_nodes", "read_graph");
const thinking = server("thinking");

/** Every one of these stands in the answer. */
const says =
  (...patterns) =>
  ({ text }) =>
    patterns.every((pattern) => pattern.test(text));
const file = (name, pattern) => () => pattern.test(textOf(name));
const exists = (name) => existsSync(join(folder, name));

/** `isRight`: of `{ text }`, after the answer. What a task changes on disk counts, too. */
export const tasks = [
  // Three tools of the filesystem server.
  {
    name: "subtract two numbers",
    tools: fewFiles,
    ask: `Read ${folder}/report.txt. What is the profit, that is revenue minus costs?`,
    isRight: says(/16[.,' ]?500/),
  },
  {
    name: "who wrote it",
    tools: fewFiles,
    ask: `Who wrote the poem in ${folder}/poem.txt?`,
    isRight: says(/Blake/),
  },
  {
    name: "open tasks",
    tools: fewFiles,
    ask: `Read ${folder}/notes/todo.md. Which tasks are not done yet?`,
    isRight: ({ text }) =>
      [/bank/, /plants/, /train/].every((pattern) => pattern.test(text)) &&
      !/not done[^.]*stamps/i.test(text),
  },
  {
    name: "write a summary",
    tools: fewFiles,
    ask: `Read ${folder}/notes/meeting.md and write a summary of one sentence to ${folder}/summary.txt`,
    isRight: file("summary.txt", /2\.4|Tuesday|meeting/i),
  },
  {
    name: "read code",
    tools: fewFiles,
    ask: `Read ${folder}/src/main.py and ${folder}/src/util.py. Which number does main.py print?`,
    isRight: says(/\b42\b/),
  },
  {
    name: "yes or no",
    tools: fewFiles,
    ask: `Is debug on or off in ${folder}/config.json?`,
    isRight: says(/\b(off|false|disabled|not (on|enabled))\b/i),
  },
  {
    name: "the last line",
    tools: fewFiles,
    ask: `At what time was the shutdown in ${folder}/server.log?`,
    isRight: says(/0?8:30/),
  },
  // Other servers.
  {
    name: "add two numbers",
    tools: everything,
    ask: "Add 1234 and 4321 with the tool.",
    isRight: says(/5[.,' ]?555/),
  },
  {
    name: "echo",
    tools: everything,
    ask: "Echo the text: good morning",
    isRight: says(/good morning/i),
  },
  {
    name: "a structured result",
    tools: everything,
    ask: "What is the weather in Chicago?",
    isRight: says(/36|rain|drizzle/i),
  },
  {
    name: "remember",
    tools: memory,
    ask: "Remember that the person Ana works at Acme.",
    isRight: () => /Ana/.test(textOf("memory.jsonl")) && /Acme/.test(textOf("memory.jsonl")),
  },
  {
    name: "recall who",
    tools: memory,
    ask: "Who works at Globex? Look into your memory.",
    isRight: says(/Boris/),
  },
  {
    name: "recall what",
    tools: memory,
    ask: "Which instrument does Chloe play? Look into your memory.",
    isRight: says(/violin/i),
  },
  {
    name: "think in steps",
    tools: thinking,
    ask: "A train goes 60 km an hour for 2.5 hours. How far does it go? Use the tool to think.",
    isRight: says(/150/),
  },
  // All 14 tools of the filesystem server.
  {
    name: "list, read, count",
    tools: allFiles,
    ask: `List the folder ${folder}, read shopping.txt and tell me how many items are on the list.`,
    isRight: says(/\b(5|five)\b/i),
  },
  {
    name: "a number in a file",
    tools: allFiles,
    ask: `Which port does ${folder}/config.json set?`,
    isRight: says(/8123/),
  },
  {
    name: "names in a file",
    tools: allFiles,
    ask: `Read ${folder}/notes/meeting.md. Who was present?`,
    isRight: says(/Ana/, /Boris/, /Chloe/),
  },
  {
    name: "write a file",
    tools: allFiles,
    ask: `Create the file ${folder}/hello.txt with the text: Hello, world`,
    isRight: file("hello.txt", /^Hello, world\s*$/),
  },
  {
    name: "count lines",
    tools: allFiles,
    ask: `How many lines of ${folder}/server.log contain the word ERROR?`,
    isRight: says(/\b(3|three)\b/i),
  },
  {
    name: "list a folder",
    tools: allFiles,
    ask: `Which files are in the folder ${folder}/src?`,
    isRight: says(/main\.py/, /util\.py/),
  },
  {
    name: "find files",
    tools: allFiles,
    ask: `Find all files below ${folder} whose name ends with .md`,
    isRight: says(/meeting\.md/, /todo\.md/),
  },
  {
    name: "rename a file",
    tools: allFiles,
    ask: `Rename ${folder}/draft.txt to ${folder}/final.txt`,
    isRight: () => exists("final.txt") && !exists("draft.txt"),
  },
  {
    name: "make a folder",
    tools: allFiles,
    ask: `Create a folder with the name archive in ${folder}`,
    isRight: () => exists("archive"),
  },
  {
    name: "edit a file",
    tools: allFiles,
    ask: `Change the port in ${folder}/config.json from 8123 to 9000.`,
    isRight: file("config.json", /"port": 9000/),
  },
  {
    name: "size of a file",
    tools: allFiles,
    ask: `How many bytes does ${folder}/report.txt have?`,
    isRight: ({ text }) => text.includes(String(textOf("report.txt").length)),
  },
  {
    name: "a file that is missing",
    tools: allFiles,
    ask: `Read ${folder}/missing.txt and tell me what it says.`,
    isRight: says(/not (exist|found)|no such|could(n't| not)|can(no|')t|unable|doesn't exist/i),
  },
  {
    name: "two files",
    tools: allFiles,
    ask: `Read ${folder}/shopping.txt and ${folder}/prices.csv. Which items of the list have no price?`,
    isRight: says(/plums/i, /milk/i),
  },
  {
    name: "allowed folders",
    tools: allFiles,
    ask: "Which directories are you allowed to access?",
    isRight: says(/fermata-tasks/),
  },
  {
    name: "copy a file",
    tools: allFiles,
    ask: `Read ${folder}/poem.txt and write the same text to ${folder}/copy.txt`,
    isRight: file("copy.txt", /Tyger Tyger, burning bright,\s+In the forests of the night/),
  },
  {
    name: "no tool is needed",
    tools: allFiles,
    ask: "What is the capital of France?",
    isRight: says(/Paris/),
  },
];
