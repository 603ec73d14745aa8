/** The grammar of everything that a model may write in one round, as Lark. */

import {
  endsReasoning,
  headOf,
  markedTextAndCall,
  openingOf,
  reasoningAndCall,
  unmarkedHead,
  wordsAndCall,
} from "./call-beginnings.ts";
import type { ArgumentStyle, CallPart, CallSyntax, ParameterArguments } from "./call-syntax.ts";
import { type Markup, escapeRegex, regexTerminal, type Rules, escapedSeparators } from "./lark.ts";
import { jsonValue } from "./json-values.ts";
import type { JsonObject } from "./schema/types.ts";
import type { ReasoningMarkers, RoundReasoning } from "./types.ts";
import { LiteralWriter } from "./literal-values.ts";
import { ParameterWriter, textEndComment } from "./parameter-rules.ts";

export interface RoundShape {
  markup: Markup;
  syntax: CallSyntax;
  /** Those that may be called; where none may be, those that are offered. Arguments as `compileSchema` writes them. */
  tools: readonly { name: string; schema: JsonObject }[];
  /**
   * `none`: an answer in words, or a document. `never`: text without a call, or a document. `optional`: free text, a
   * document, or calls.
   */
  calls: "none" | "never" | "optional" | "required";
  parallel: boolean;
  /** Lark for the answer when it calls nothing: `start` is `document`. Null: free text. */
  document: string | null;
  reasoning: RoundReasoning;
  markers: ReasoningMarkers | null;
}

/** Calls in one round. */
const maxCalls = 32;
const maxThoughts = 8;

export function roundGrammar(shape: RoundShape): string {
  const { syntax, document, calls, markup } = shape;
  const mayCall = calls === "optional" || calls === "required";
  const thought = reasoningRules(shape);
  const isFreeText = document === null && calls !== "required";
  const rules = [thought.rules, "TEXT: /(?s:.*)/\n"];
  if (thought.excluded !== null)
    rules.push(`FREE: TEXT & ~/(?s:\\s*${escapeRegex(thought.excluded)}.*)/\n`);
  const free = thought.excluded === null ? "TEXT" : "FREE";
  const textOpen = markup.sequence(syntax.textOpen ?? "");
  const textClose = markup.sequence(syntax.textClose ?? "");
  const options: string[] = [];
  if (mayCall) {
    rules.push(callRules(shape));
    if (isFreeText && textOpen === "") {
      const words = wordsAndCall(shape, free);
      rules.push(words.rules);
      options.push(words.expression);
    } else {
      const text = isFreeText && textClose !== "" ? "(answer)? " : "";
      options.push(`${text}${markup.sequence(openingOf(syntax))} first_call`);
      if (isFreeText && syntax.beforeCall !== undefined) {
        const words = markedTextAndCall(shape, syntax.beforeCall);
        rules.push(words.rules);
        options.push(`${textOpen} ${words.expression}`);
      }
    }
  }
  if (isFreeText) {
    const barred = mayCall ? "" : noAnswer(shape, thought.excluded);
    if (!mayCall) rules.push(`ANSWER: TEXT & ~/(?s:${barred})/\n`);
    const text = mayCall ? free : "ANSWER";
    const closed = markup.until("answer_text", text, syntax.textClose ?? "");
    if (closed.expression === "") options.push(`${textOpen} ${mayCall ? `(${text})?` : text}`);
    else {
      rules.push(`answer: ${textOpen} ${closed.expression}\n${closed.rule}`);
      options.push("answer");
    }
  } else if (calls !== "required") options.push(`${textOpen} document ${textClose}`.trimEnd());
  if (thought.rules !== "") rules.push("BLANKS: /[ \\n]{1,4}/\n");
  rules.push(document ?? "");
  const comment = mayCall ? textEndComment(syntax.argumentStyle) : "";
  return `${comment}start: ${thought.start}\nbody: ${options.join(" | ")}\n${rules.join("")}`;
}

interface Reasoning {
  /** Reasoning and `body`, which follows it. */
  start: string;
  rules: string;
  /** Text that free text may not begin with, or it would be taken for reasoning. */
  excluded: string | null;
}

function reasoningRules(shape: RoundShape): Reasoning {
  const { reasoning, markers, markup, syntax, calls } = shape;
  if (markers === null) return { start: "body", rules: "", excluded: null };
  const excluded = markup.startsWithToken(markers.open) ? null : markers.open;
  if (reasoning === "no") return { start: "body", rules: "", excluded };
  // Models write blanks around reasoning.
  const opened = markup.until("opened", "BLANKS?", markers.open);
  if ((calls === "optional" || calls === "required") && endsReasoning(syntax)) {
    const { expression, rules } = reasoningAndCall(shape, markers.close);
    if (reasoning === "open") return { start: expression, rules, excluded: null };
    const start = `${opened.expression} ${expression} | body`;
    return { start, rules: opened.rule + rules, excluded };
  }
  const end = markup.until("thought", "TEXT", markers.close + (syntax.afterReasoning ?? ""));
  if (reasoning === "open")
    return { start: `${end.expression} BLANKS? body`, rules: end.rule, excluded: null };
  const messages = [`${opened.expression} ${end.expression}`];
  let rules = opened.rule + end.rule;
  if (syntax.preamble !== undefined) {
    const text = markup.until("preamble", "TEXT", syntax.preamble.close);
    messages.push(`${markup.sequence(syntax.preamble.open)} ${text.expression}`);
    rules += text.rule;
  }
  const more = messages.length === 1 ? messages[0]! : `(${messages.join(" | ")})`;
  const repeated = syntax.afterReasoning === undefined ? "?" : `{0,${maxThoughts}}`;
  return { start: `(${more} BLANKS?)${repeated} body`, rules, excluded };
}

/**
 * What is no answer: blanks, reasoning, and what the parser would read as a call. Control tokens are in no text.
 * One expression: the mask engine's first step is too dear for several.
 */
function noAnswer(
  { syntax, tools, markup, calls: place }: RoundShape,
  reasoning: string | null,
): string {
  const blanks = "[ \\n\\t\\r]*";
  const names = tools.map(({ name }) => escapeRegex(name)).join("|");
  // The opening of some formats; models of others write it, too.
  const calls = [`\\{[ \\n]{0,4}"name": ?"(${names})`];
  // A list's bracket behind the marker says no more.
  const { beforeCall } = syntax;
  const opening = ((beforeCall ?? "") + openingOf(syntax)).trim().replace(/\[$/u, "");
  const isMarker = opening !== "" && !opening.startsWith("{");
  const named = beforeCall === undefined ? "" : `(${names})`;
  if (isMarker && !markup.startsWithToken(opening)) calls.push(escapeRegex(opening) + named);
  // An answer in words begins with none of them; a call that is spelled wrong does.
  const marks = place === "never" ? [] : ["\\{", "<", "`"];
  const starts = [...marks, ...(reasoning === null ? [] : [escapeRegex(reasoning)])];
  const beginnings = starts.length === 0 ? [] : [`${blanks}(${starts.join("|")}).*`];
  // What the answer continues may have been enough.
  const empty = place === "never" ? [] : [blanks];
  return [...empty, ...beginnings, `.*(${calls.join("|")}).*`].join("|");
}

function callRules({ syntax, tools, parallel, markup }: RoundShape): string {
  const close = markup.sequence(syntax.callClose);
  const others = parallel
    ? `(${nextOpening(syntax, markup)} call ${close}){0,${maxCalls - 1}}`
    : "";
  const { argumentStyle: style, body } = syntax;
  const args =
    style.style === "parameters"
      ? new ParameterWriter(style, textBehindArguments(body), markup)
      : style;
  const isUnmarked = unmarkedHead(syntax, markup) !== null;
  const head = isUnmarked ? headOf(syntax) : null;
  const rules = tools.map((tool, index) => toolRule({ body, args, tool, index, markup, head }));
  const end = `${close} ${others} ${markup.sequence(syntax.sectionClose)}`;
  const unmarked = tools.map((_, index) => `unmarked_${index}`).join(" | ");
  return [
    `first_call: call ${end}\n`,
    isUnmarked ? `first_unmarked: (${unmarked}) ${end}\n` : "",
    `call: ${tools.map((_, index) => `tool_${index}`).join(" | ")}\n`,
    ...rules,
    args instanceof ParameterWriter ? args.rules : "",
  ].join("");
}

function nextOpening(syntax: CallSyntax, markup: Markup): string {
  const { separator, mayLackSeparator, callOpen } = syntax;
  if (!mayLackSeparator) return markup.sequence(separator + callOpen);
  return `(${markup.sequence(separator)})? ${markup.sequence(callOpen)}`;
}

function textBehindArguments(body: readonly CallPart[]): string {
  const at = body.findIndex((part) => typeof part !== "string" && part.part === "arguments");
  const behind = body.slice(at + 1).filter((part) => typeof part === "string");
  return behind.join("");
}

type OtherStyle = Exclude<ArgumentStyle, ParameterArguments>;

interface ToolPlace {
  body: readonly CallPart[];
  /** Parameters are written with what is behind them. */
  args: ParameterWriter | OtherStyle;
  tool: { name: string; schema: JsonObject };
  index: number;
  markup: Markup;
  /** Text before the name that an unmarked call begins with; null: there are none. */
  head: string | null;
}

function toolRule({ body, args, tool, index, markup, head }: ToolPlace): string {
  const parts: string[] = [];
  let text = "";
  const flush = (): void => {
    if (text !== "") parts.push(markup.sequence(text));
    text = "";
  };
  const name = `args_${index}`;
  let rules = "";
  for (const part of body) {
    if (typeof part === "string") text += part;
    else if (part.part === "name") text += tool.name;
    else {
      const before = text;
      flush();
      if (part.part === "id") parts.push(regexTerminal(part.pattern));
      else if (args instanceof ParameterWriter) {
        parts.push(name);
        rules = `${name}: ${args.write(tool.schema, name)}\n`;
        if (head !== null) {
          const named = markup.sequence(before.slice(head.length));
          rules += `unmarked_${index}: ${named} ${name}\n`;
        }
        break;
      } else {
        const values = argumentRules(args, tool.schema, name, markup);
        parts.push(name);
        rules = `${name}: ${values.expression}\n${values.rules}`;
      }
    }
  }
  flush();
  return `tool_${index}: ${parts.join(" ")}\n${rules}`;
}

/**
 * @param schema of an object, as `compileSchema` writes it
 * @param name of the rules, which begin with it
 */
function argumentRules(style: OtherStyle, schema: JsonObject, name: string, markup: Markup): Rules {
  switch (style.style) {
    case "json":
      return { expression: jsonValue(schema, escapedSeparators(style)), rules: "" };
    case "python":
      return new LiteralWriter(style, schema, name, markup).keywordArguments();
    case "bare-keys":
      return new LiteralWriter(style, schema, name, markup).object();
  }
}
