/** `fermata chat`: at a terminal a conversation, else one question and its answer. */

import { join } from "node:path";
import { text as readAll } from "node:stream/consumers";
import { StreamError, type ConversationState } from "../../client/index.ts";
import { invalidOption } from "../../errors.ts";
import type { CommandContext, ParsedArguments } from "../commands/command.ts";
import { exitCodes } from "../failure.ts";
import { ownOptions } from "../options/option-values.ts";
import type { ValuesOf } from "../options/option-table.ts";
import { AnswerPrinter } from "./answer-printer.ts";
import { chatOptions } from "../commands/commands.ts";
import { connect, type Connection } from "./connect.ts";
import { OpenConversation, watchRun } from "./conversation.ts";
import { InputHistory, Keyboard } from "./keyboard.ts";
import { Interactive } from "./interactive.ts";
import { Screen } from "./screen.ts";
import { chooseModel } from "./slash-commands.ts";
import { userFolder } from "../folders.ts";
import { onSignals } from "../signals.ts";

type ChatOptions = ValuesOf<typeof chatOptions>;

/** Resolves to the exit code. @throws FermataError */
export async function runChat(args: ParsedArguments, context: CommandContext): Promise<number> {
  const options = ownOptions(chatOptions, args.values, context);
  const prompt = await readPrompt(args.operands);
  if (prompt === null && options.json) {
    throw invalidOption("--json needs a PROMPT, or - for standard input.", "json");
  }
  const notes = new Screen(process.stderr, context.env);
  const note = (text: string): void => notes.line(notes.style("dim", text));
  try {
    const connection = await connect(options.url, args.values, context, note);
    try {
      return prompt === null
        ? await converse(connection, options, context)
        : await answerOnce(connection, prompt, options, context);
    } finally {
      await connection.close();
    }
  } catch (error) {
    if (!(error instanceof StreamError)) throw error;
    context.err(`fermata: ${notes.foreign(error.message)}\n`);
    return exitCodes.failed;
  }
}

/** Null: a person is at the terminal and types. `-` is standard input. */
async function readPrompt(operands: readonly string[]): Promise<string | null> {
  const words = operands.length === 0 && !process.stdin.isTTY ? ["-"] : operands;
  if (words.length === 0) return null;
  const parts = await Promise.all(
    words.map((word) => (word === "-" ? readAll(process.stdin) : word)),
  );
  const prompt = parts.map((part) => part.trim()).join("\n\n");
  if (prompt !== "") return prompt;
  throw invalidOption("The prompt is empty.", "PROMPT");
}

async function converse(
  { api }: Connection,
  options: ChatOptions,
  { env, cwd }: CommandContext,
): Promise<number> {
  const history = new InputHistory(join(userFolder("state", env), "chat-history"));
  const interactive = new Interactive({
    api,
    conversation: openConversation(api, options),
    keyboard: new Keyboard(process.stdin, process.stdout, history),
    screen: new Screen(process.stdout, env),
    cwd,
    showReasoning: options.showReasoning,
    approve: options.approve,
    onResize: (listener) => {
      process.stdout.on("resize", listener);
      return () => process.stdout.off("resize", listener);
    },
    open: options.open,
    use: options.use,
  });
  return interactive.run();
}

async function answerOnce(
  { api }: Connection,
  prompt: string,
  options: ChatOptions,
  { env, out }: CommandContext,
): Promise<number> {
  const conversation = openConversation(api, options);
  if (options.open !== undefined) await conversation.open(options.open);
  if (options.use !== undefined) await chooseModel(options.use, { api, conversation });
  const cards = new Screen(process.stderr, env);
  const text = options.json
    ? new Screen({ write: () => {} }, env)
    : process.stdout.isTTY && process.stderr.isTTY
      ? cards
      : new Screen(process.stdout, env);
  const printer = new AnswerPrinter({
    text,
    cards: options.json ? text : cards,
    showReasoning: options.showReasoning,
  });
  const [stop, leave] = [new AbortController(), new AbortController()];
  const offSignals = onSignals(["SIGINT"], () => {
    if (stop.signal.aborted) leave.abort();
    stop.abort();
  });
  try {
    const run = await conversation.begin(() => conversation.ask(prompt), stop.signal);
    if (run === null) return exitCodes.interrupted;
    const state = await watchRun(api, conversation.id!, run.run_id, {
      printer,
      approve: async ({ tool_name: name, server, question }, problem) => {
        const needsAnswer = question?.schema !== undefined || question?.url !== undefined;
        if (options.approve === "all" && !needsAnswer && problem === undefined)
          return { decision: "approve" };
        if (question !== undefined) {
          cards.line(`${server} asks something and nobody can answer here: fermata chat`);
          return { decision: "cancel" };
        }
        if (options.approve === "none") return { decision: "deny" };
        if (options.approve === "ask")
          cards.line(`${name} needs approval and nobody can be asked: --approve all`);
        return { decision: "deny", reason: "nobody could be asked" };
      },
      stop: stop.signal,
      leave: leave.signal,
    });
    if (options.json) out(`${JSON.stringify(summary(conversation.id!, run.message_id, state))}\n`);
    return exitCodeOf(state);
  } catch (error) {
    if (leave.signal.aborted) return exitCodes.interrupted;
    throw error;
  } finally {
    offSignals();
  }
}

function openConversation(api: Connection["api"], options: ChatOptions): OpenConversation {
  const { instructions } = options;
  return new OpenConversation(api, { model: undefined, instructions, tools: undefined });
}

function summary(conversationId: string, messageId: string, state: ConversationState): object {
  const { message, reasoning, citations, toolCalls, end } = state;
  return {
    conversation_id: conversationId,
    message_id: messageId,
    status: end?.status ?? "failed",
    message,
    reasoning,
    citations,
    tool_calls: toolCalls.map((call) => ({
      call_id: call.call_id,
      tool_name: call.tool_name,
      arguments: call.arguments,
      state: call.progress,
      response: call.tool_response,
      milliseconds: call.milliseconds,
      ...call.tool_call_details,
    })),
    usage: end?.usage ?? null,
    error: end?.error ?? null,
  };
}

function exitCodeOf({ end }: ConversationState): number {
  if (end?.status === "cancelled") return exitCodes.interrupted;
  return end?.status === "failed" || end === null ? exitCodes.failed : 0;
}
