/**
 * The conversation at a terminal.
 *
 *   prompt -> (line) -> answering -> prompt …
 *   answering, before it begins: Ctrl-C -> prompt, warned
 *   answering: Ctrl-C -> stopping: Ctrl-C -> left; what ends before the second is prompt, warned
 *   prompt, empty: Ctrl-C -> warned: Ctrl-C -> left
 */

import {
  type Conversation,
  type RunStarted,
  StreamError,
  stateOfMessage,
  fieldValue,
  type Question,
  type QuestionField,
  questionFields,
} from "../../client/index.ts";
import { FermataError } from "../../errors.ts";
import { exitCodes } from "../failure.ts";
import { AnswerPrinter } from "./answer-printer.ts";
import type { ChatApi } from "./connect.ts";
import { branchOf, type OpenConversation, watchRun } from "./conversation.ts";
import type { ApprovalAnswer, ApprovalAsked } from "./decide.ts";
import { type Key, type Keyboard, TypedAhead } from "./keyboard.ts";
import type { Screen } from "./screen.ts";
import { chooseModel, completeSlash, runSlashCommand } from "./slash-commands.ts";

interface InteractiveOptions {
  api: ChatApi;
  conversation: OpenConversation;
  keyboard: Keyboard;
  screen: Screen;
  cwd: string;
  showReasoning: boolean;
  approve: "ask" | "all" | "none";
  /** Told on every resize; gives back what ends that. */
  onResize(listener: () => void): () => void;
  /** Open from the start. */
  open: string | undefined;
  /** Model or agent that answers from the start. */
  use: string | undefined;
}

const refreshMs = 250;

export class Interactive {
  readonly #options: InteractiveOptions;
  /** Tools that the person allowed for the rest of the session. */
  readonly #allowed = new Set<string>();
  /** The next Ctrl-C leaves. */
  #isWarned = false;
  #onKey: ((key: Key) => void) | null = null;
  /** While an answer came. */
  readonly #typed = new TypedAhead();

  constructor(options: InteractiveOptions) {
    this.#options = options;
  }

  /** Resolves to the exit code. */
  async run(): Promise<number> {
    const { screen, keyboard, api, open, use, conversation } = this.#options;
    screen.line(screen.style("dim", `${api.url} · /help lists commands, Ctrl-D leaves`));
    if (open !== undefined) await this.#show(await conversation.open(open));
    if (use !== undefined) await chooseModel(use, { api, conversation });
    for (;;) {
      screen.startLine();
      const typed = this.#typed.take();
      if (typed === null) return 0;
      const line = await keyboard.readLine("> ", completeSlash, typed);
      if (line === "end") return 0;
      if (line === "interrupt") {
        if (this.#isWarned) return exitCodes.interrupted;
        this.#warn();
        continue;
      }
      this.#isWarned = false;
      if (line === "") continue;
      const outcome = await this.#take(line);
      if (outcome === "quit") return 0;
      if (outcome === "left") return exitCodes.interrupted;
    }
  }

  #warn(): void {
    const { screen } = this.#options;
    this.#isWarned = true;
    screen.line(screen.style("dim", "Ctrl-C again leaves."));
  }

  async #take(line: string): Promise<"quit" | "left" | null> {
    const { screen, conversation, api, cwd } = this.#options;
    try {
      if (!line.startsWith("/")) return await this.#answer(() => conversation.ask(line));
      const outcome = await runSlashCommand(line, {
        api,
        conversation,
        cwd,
        line: (text) => screen.line(screen.foreign(text)),
        show: (opened) => this.#show(opened),
      });
      if (outcome === null || outcome === "quit") return outcome;
      return await this.#answer(outcome.run);
    } catch (error) {
      if (!(error instanceof FermataError) && !(error instanceof StreamError)) throw error;
      screen.line(screen.style("red", screen.foreign(error.message)));
      return null;
    }
  }

  /** @param ask for an answer, or the id of a run that goes on */
  async #answer(ask: string | (() => Promise<RunStarted>)): Promise<"left" | null> {
    const { api, conversation, keyboard, screen, onResize } = this.#options;
    const printer = this.#printer();
    const [stop, leave] = [new AbortController(), new AbortController()];
    const stopListening = keyboard.listen((key) => {
      if (key === "interrupt") {
        if (stop.signal.aborted) leave.abort();
        stop.abort();
        this.#isWarned = true;
        this.#typed.clear();
      }
      if (this.#onKey !== null) this.#onKey(key);
      else if (key === "end") this.#typed.end();
      else if (typeof key === "object") this.#typed.add(key.character);
    });
    const refresh = (): void => {
      if (this.#onKey === null) printer.refresh();
    };
    const timer = setInterval(refresh, refreshMs);
    const stopResizing = onResize(refresh);
    try {
      const begun =
        typeof ask === "string" ? { run_id: ask } : await conversation.begin(ask, stop.signal);
      if (begun === null) {
        screen.line(screen.style("yellow", "Stopped."));
        return null;
      }
      await watchRun(api, conversation.id!, begun.run_id, {
        printer,
        approve: (asked, problem) => this.#approve(asked, problem),
        stop: stop.signal,
        leave: leave.signal,
      });
      // It ended before it could be stopped.
      if (stop.signal.aborted && !printer.wasStopped) this.#warn();
      return null;
    } catch (error) {
      if (leave.signal.aborted) return "left";
      throw error;
    } finally {
      clearInterval(timer);
      stopResizing();
      stopListening();
      this.#onKey?.("end");
      screen.status("");
    }
  }

  /** A key: y, n, or a for this tool until the end of the session. */
  async #approve(asked: ApprovalAsked, problem?: string): Promise<ApprovalAnswer> {
    const { screen, approve } = this.#options;
    const { tool_name: name, server, arguments: args, has_changed: hasChanged = false } = asked;
    const { may_have_run: mayHaveRun = false } = asked;
    if (asked.question !== undefined) return await this.#answerQuestion(asked, problem);
    if (approve === "all" || (this.#allowed.has(name) && !hasChanged && !mayHaveRun))
      return { decision: "approve" };
    if (approve === "none")
      return { decision: "deny", reason: "Calls are not approved: --approve none." };
    return await new Promise((resolve) => {
      const decide = (answer: true | string, word: string): void => {
        this.#onKey = null;
        screen.write(`${word}\n`);
        if (answer === true) resolve({ decision: "approve" });
        else resolve({ decision: "deny", ...(answer !== "" && { reason: answer }) });
      };
      screen.line(
        `${screen.style("yellow", `${server} wants to run ${name}`)} ${screen.clip(args, 500)}`,
      );
      if (hasChanged) screen.line(`${server} has changed ${name} since you could first use it.`);
      if (mayHaveRun)
        screen.line("The server was restarted while this call ran: it may have taken effect.");
      screen.write("Allow it? [y]es, [n]o, [a]lways ");
      this.#onKey = (key) => {
        if (key === "interrupt" || key === "end") return decide("", "no");
        const character = key.character.toLowerCase();
        if (character === "y") decide(true, "yes");
        if (character === "n") decide("The user said no.", "no");
        if (character !== "a") return undefined;
        this.#allowed.add(name);
        return decide(true, "always");
      };
    });
  }

  #answerQuestion(
    { question, server }: ApprovalAsked,
    problem: string | undefined,
  ): Promise<ApprovalAnswer> {
    const { screen, approve } = this.#options;
    if (approve === "none") return Promise.resolve({ decision: "cancel" });
    if (problem !== undefined) screen.line(screen.style("red", screen.foreign(problem)));
    return new Promise((resolve) => {
      const settle = (answer: ApprovalAnswer): void => {
        this.#onKey = null;
        resolve(answer);
      };
      this.#onKey = new TerminalQuestion(question!, server, screen, settle).onKey;
    });
  }

  /** What was said; a run that goes on is followed. */
  async #show(conversation: Conversation): Promise<void> {
    const { screen } = this.#options;
    screen.line(screen.style("bold", screen.foreign(conversation.title || "(no title)")));
    for (const message of branchOf(conversation)) {
      if (message.role === "user") screen.line(`> ${screen.foreign(message.message)}`);
      else if (message.status === "running" && message.run_id !== null)
        await this.#answer(message.run_id);
      else this.#printer().replay(stateOfMessage(message));
    }
  }

  #printer(): AnswerPrinter {
    const { screen, showReasoning } = this.#options;
    return new AnswerPrinter({ text: screen, cards: screen, showReasoning });
  }
}

class TerminalQuestion {
  readonly #screen: Screen;
  readonly #settle: (answer: ApprovalAnswer) => void;
  readonly #fields: QuestionField[];
  readonly #content: Record<string, unknown> = {};
  #typed = "";

  /** Shows it. */
  constructor(
    { message, schema, url }: Question,
    server: string,
    screen: Screen,
    settle: (answer: ApprovalAnswer) => void,
  ) {
    this.#screen = screen;
    this.#settle = settle;
    this.#fields = questionFields(schema);
    screen.line(`${screen.style("yellow", `${server} asks:`)} ${screen.foreign(message)}`);
    if (url !== undefined)
      screen.line(`It wants you to open ${screen.foreign(url)} (${new URL(url).host})`);
    if (schema !== undefined)
      screen.line(
        screen.style(
          "dim",
          "Enter goes on; Ctrl-D gives no answer, Ctrl-C also stops the chat's answer.",
        ),
      );
    this.#prompt();
  }

  readonly onKey = (key: Key): void => {
    if (key === "interrupt" || key === "end") return this.#end("nothing", { decision: "cancel" });
    const [field] = this.#fields;
    const { character } = key;
    if (field === undefined) {
      if (character === "y") this.#end("yes", { decision: "approve", content: this.#content });
      if (character === "n") this.#end("no", { decision: "deny" });
      return;
    }
    if (character === "\r" || character === "\n") return this.#next(field);
    if (character === "\u007f" || character === "\b") {
      if (this.#typed === "") return;
      this.#typed = [...this.#typed].slice(0, -1).join("");
      return this.#screen.write("\b \b");
    }
    if (character < " ") return;
    this.#typed += character;
    this.#screen.write(this.#screen.foreign(character));
  };

  #next(field: QuestionField): void {
    const value = fieldValue(field, this.#typed === "" ? field.initial : this.#typed);
    this.#typed = "";
    this.#screen.write("\n");
    if (value === undefined && field.isRequired) return this.#prompt();
    if (value !== undefined) this.#content[field.name] = value;
    this.#fields.shift();
    this.#prompt();
  }

  #prompt(): void {
    const screen = this.#screen;
    const [field] = this.#fields;
    if (field === undefined) return screen.write("Send it? [y]es, [n]o ");
    const { label, description, options, kind, isRequired, initial } = field;
    const choices = kind === "boolean" ? ["yes", "no"] : options.map((option) => option.label);
    const hints = [
      description,
      choices.length === 0 ? "" : choices.join(", "),
      kind === "choices" ? "several, with commas" : "",
      isRequired ? "" : "may be empty",
      initial === "" ? "" : `default: ${initial}`,
    ].filter((hint) => hint !== "");
    const hint = hints.length === 0 ? "" : ` (${hints.join("; ")})`;
    screen.write(`${screen.foreign(`${label}${hint}`)}: `);
  }

  #end(word: string, answer: ApprovalAnswer): void {
    this.#screen.write(`${word}\n`);
    this.#settle(answer);
  }
}
