/** What can be typed instead of a message: `/help` lists it. */

import { writeFileSync } from "node:fs";
import { resolve } from "node:path";
import type { Conversation, RunStarted } from "../../client/index.ts";
import { FermataError } from "../../errors.ts";
import { didYouMean } from "../../near-names.ts";
import type { ChatApi } from "./connect.ts";
import { branchOf, type OpenConversation } from "./conversation.ts";

interface SlashContext {
  api: ChatApi;
  conversation: OpenConversation;
  cwd: string;
  line(text: string): void;
  show(conversation: Conversation): Promise<void>;
}

/** `run`: an answer comes once it is called. `quit`: the chat ends. */
type SlashOutcome = { run: () => Promise<RunStarted> } | "quit" | null;

interface SlashCommand {
  name: string;
  usage: string;
  help: string;
  run(rest: string, context: SlashContext): Promise<SlashOutcome> | SlashOutcome;
}

const listed = 20;

const slashCommands: readonly SlashCommand[] = [
  { name: "help", usage: "", help: "This list.", run: (_, context) => help(context) },
  {
    name: "new",
    usage: "",
    help: "Begin another conversation.",
    run: (_, { conversation, line }) => {
      conversation.renew();
      line("A new conversation.");
      return null;
    },
  },
  {
    name: "list",
    usage: "",
    help: "The latest conversations.",
    run: (_, context) => list(context),
  },
  {
    name: "open",
    usage: "ID",
    help: "Open a conversation by its id or its number in /list.",
    run: open,
  },
  {
    name: "model",
    usage: "[NAME]",
    help: "List models and agents, or choose the one that answers next.",
    run: model,
  },
  {
    name: "tools",
    usage: "[NAME... | all | none]",
    help: "List the tools, or choose which tools may be called.",
    run: tools,
  },
  {
    name: "retry",
    usage: "",
    help: "Answer the last question again.",
    run: (_, { conversation }) => ({ run: () => conversation.retry() }),
  },
  {
    name: "branch",
    usage: "[N TEXT]",
    help: "List your questions, or ask TEXT instead of the Nth. The messages before it stay.",
    run: branch,
  },
  {
    name: "save",
    usage: "FILE",
    help: "Save the conversation as Markdown, or as JSON if FILE ends in .json.",
    run: save,
  },
  { name: "quit", usage: "", help: "Leave. So do Ctrl-D, and Ctrl-C twice.", run: () => "quit" },
];

/** @throws FermataError | StreamError: what was wrong with the command */
export async function runSlashCommand(text: string, context: SlashContext): Promise<SlashOutcome> {
  const [, name = "", rest = ""] = /^\/(\S*)\s*([\s\S]*)$/.exec(text) ?? [];
  const command = slashCommands.find((candidate) => candidate.name === name);
  if (command !== undefined) return command.run(rest.trim(), context);
  const names = slashCommands.map((candidate) => `/${candidate.name}`);
  throw mistake(`There is no /${name}.${didYouMean(`/${name}`, names)} /help lists what there is.`);
}

/** For the tab key. */
export function completeSlash(line: string): string[] {
  if (!line.startsWith("/") || line.includes(" ")) return [];
  return slashCommands.map(({ name }) => `/${name}`).filter((name) => name.startsWith(line));
}

function help({ line }: SlashContext): null {
  for (const { name, usage, help: text } of slashCommands)
    line(`  ${`/${name} ${usage}`.padEnd(32)} ${text}`);
  line("Ctrl-C stops an answer. A backslash at the end of a line goes on in the next.");
  return null;
}

async function list({ api, conversation, line }: SlashContext): Promise<null> {
  const { conversations } = await api.list(listed);
  if (conversations.length === 0) line("There is none yet.");
  for (const [index, { id, title, updated_at: at, run_id: run }] of conversations.entries()) {
    const mark = id === conversation.id ? "*" : " ";
    const time = new Date(at * 1000).toISOString().slice(0, 16).replace("T", " ");
    const state = run === null ? "" : " (running)";
    line(
      `${mark}${String(index + 1).padStart(3)}  ${time}  ${title || "(no title)"}${state}  ${id}`,
    );
  }
  return null;
}

async function open(wanted: string, { api, conversation, show }: SlashContext): Promise<null> {
  if (wanted === "") throw mistake("Which? /list shows them: /open N.");
  const number = /^\d{1,2}$/.test(wanted) ? Number(wanted) : null;
  const listing = number === null ? [] : (await api.list(listed)).conversations;
  await show(await conversation.open(listing[(number ?? 0) - 1]?.id ?? wanted));
  return null;
}

async function model(name: string, { api, conversation, line }: SlashContext): Promise<null> {
  if (name === "") {
    const { models, agents } = await api.tools();
    for (const { id } of models) line(`  ${id}`);
    for (const agent of agents) line(`  ${agent.name}  ${agent.description}`);
    return null;
  }
  await chooseModel(name, { api, conversation });
  line(`${name} answers from now on.`);
  return null;
}

/** @throws FermataError: there is none of this name */
export async function chooseModel(
  name: string,
  { api, conversation }: Pick<SlashContext, "api" | "conversation">,
): Promise<void> {
  const { models, agents } = await api.tools();
  const names = ["default", ...models.map(({ id }) => id), ...agents.map((agent) => agent.name)];
  if (!names.includes(name))
    throw mistake(`There is no model ${name}.${didYouMean(name, names)} /model lists them.`);
  await conversation.set({ model: name });
}

async function tools(text: string, { api, conversation, line }: SlashContext): Promise<null> {
  const { servers } = await api.tools();
  if (text === "") {
    if (servers.length === 0) line("No MCP server is connected: --mcp-config, --mcp-command.");
    for (const server of servers) {
      line(`${server.name}: ${server.state}${server.error === null ? "" : `, ${server.error}`}`);
      for (const { name, description, approval } of server.tools) {
        const ask = approval === "always" ? " (asks)" : "";
        line(`  ${name}${ask}  ${(description ?? "").split("\n")[0]!.slice(0, 70)}`);
      }
    }
    return null;
  }
  const known = servers.flatMap((server) => server.tools.map(({ name }) => name));
  const wanted = text === "all" ? null : text === "none" ? [] : text.split(/[\s,]+/);
  const strange = wanted?.find((name) => !known.includes(name));
  if (strange !== undefined)
    throw mistake(`There is no tool ${strange}.${didYouMean(strange, known)} /tools lists them.`);
  await conversation.set({ tools: wanted });
  line(
    wanted === null ? "All tools may be called." : `May be called: ${wanted.join(", ") || "none"}.`,
  );
  return null;
}

async function branch(text: string, { conversation, line }: SlashContext): Promise<SlashOutcome> {
  const [, number, message] = /^(\d+)\s+([\s\S]+)$/.exec(text) ?? [];
  if (message !== undefined)
    return { run: () => conversation.branchAt(Number(number) - 1, message) };
  if (text !== "") throw mistake("Name the question and the new text: /branch 2 TEXT.");
  const questions = await conversation.questions();
  if (questions.length === 0) line("Nothing was asked yet.");
  for (const [index, question] of questions.entries())
    line(`${String(index + 1).padStart(3)}  ${question.message.split("\n")[0]}`);
  return null;
}

async function save(file: string, { api, conversation, cwd, line }: SlashContext): Promise<null> {
  if (file === "") throw mistake("Where to? /save FILE.");
  if (conversation.id === null) throw mistake("Nothing was asked yet.");
  const whole = await api.conversation(conversation.id);
  const text = file.endsWith(".json") ? `${JSON.stringify(whole, null, 2)}\n` : transcript(whole);
  const path = resolve(cwd, file);
  try {
    writeFileSync(path, text);
  } catch (cause) {
    throw mistake(`${path} cannot be written: ${(cause as Error).message}.`);
  }
  line(`Saved: ${path}`);
  return null;
}

function mistake(message: string): FermataError {
  return new FermataError("invalid_value", message);
}

/** The branch that is shown, as Markdown. */
export function transcript(conversation: Conversation): string {
  const parts = branchOf(conversation).map(({ role, message, tool_calls: calls }) => {
    const cards = calls.map(
      ({ tool_name: name, tool_call_details: details, tool_response: response }) =>
        `> \`${name}\` ${details.arguments ?? ""}\n${response.replaceAll(/^/gm, ">     ")}\n\n`,
    );
    return `## ${role === "user" ? "Question" : "Answer"}\n\n${cards.join("")}${message}\n`;
  });
  return `# ${conversation.title || "Conversation"}\n\n${parts.join("\n")}`;
}
