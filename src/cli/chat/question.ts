/** A question of a tool's server at the terminal: field after field, then the answer to send. */

import {
  fieldValue,
  type Question,
  type QuestionField,
  questionFields,
} from "../../client/index.ts";
import type { ApprovalAnswer } from "./decide.ts";
import type { Key } from "./keyboard.ts";
import type { Screen } from "./screen.ts";

export class TerminalQuestion {
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
