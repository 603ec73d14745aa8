/** The grammar of everything that a model may write in one round, as Lark. */

import type { ArgumentStyle, CallSyntax } from "./call-syntax.ts";
import {
  type Markup,
  escapeRegex,
  regexTerminal,
  type Rules,
  jsonValue,
  escapedSeparators,
} from "./lark.ts";
import type { JsonObject } from "./schema/types.ts";
import type { ReasoningMarkers } from "./types.ts";
import { LiteralWriter } from "./literal-values.ts";
import { ParameterWriter } from "./parameter-rules.ts";

export interface RoundShape {
  markup: Markup;
  syntax: CallSyntax;
  /** Those that may be called; where none may be, those that are offered. Arguments as `compileSchema` writes them. */
  tools: readonly { name: string; schema: JsonObject }[];
  /** `none`: text that begins no call, or a document. `optional`: free text, a document, or calls. */
  calls: "none" | "optional" | "required";
  parallel: boolean;
  /** Lark for the answer when it calls nothing: `start` is `document`. Null: free text. */
  document: string | null;
  /** `no`: it may not think. `split`: the text may begin with reasoning. `open`: the prompt has opened it. */
  reasoning: "no" | "split" | "open";
  markers: ReasoningMarkers | null;
}

/** Calls in one round. */
const maxCalls = 32;
const maxThoughts = 8;

export function roundGrammar(shape: RoundShape): string {
  const { syntax, document, calls, markup } = shape;
  const thought = reasoningRules(shape);
  const isFreeText = document === null && calls !== "required";
  const rules = [thought.rules, "TEXT: /(?s:.*)/\n"];
  if (thought.excluded !== null)
    rules.push(`FREE: TEXT & ~/(?s:\\s*${escapeRegex(thought.excluded)}.*)/\n`);
  const free = thought.excluded === null ? "TEXT" : "FREE";
  const textOpen = markup.sequence(syntax.textOpen ?? "");
  const textClose = markup.sequence(syntax.textClose ?? "");
  const options: string[] = [];
  if (calls !== "none") {
    rules.push(callRules(shape));
    const opening = openingOf(syntax);
    if (isFreeText && textOpen === "") {
      const lead = markup.until("before_calls", free, opening);
      rules.push(lead.rule);
      options.push(`${lead.expression} first_call`);
    } else {
      const text = isFreeText && textClose !== "" ? "(answer)? " : "";
      options.push(`${text}${markup.sequence(opening)} first_call`);
    }
  }
  if (isFreeText) {
    const isAnswer = calls === "none";
    if (isAnswer) rules.push(`ANSWER: TEXT & ~/(?s:${noAnswer(shape, thought.excluded)})/\n`);
    const text = isAnswer ? "ANSWER" : free;
    const closed = markup.until("answer_text", text, syntax.textClose ?? "");
    if (closed.expression === "") options.push(`${textOpen} ${isAnswer ? text : `(${text})?`}`);
    else {
      rules.push(`answer: ${textOpen} ${closed.expression}\n${closed.rule}`);
      options.push("answer");
    }
  } else if (calls !== "required") options.push(`${textOpen} document ${textClose}`.trimEnd());
  if (thought.rules !== "" || thought.expression !== "") rules.push("BLANKS: /[ \\n]{1,4}/\n");
  rules.push(document ?? "");
  return `start: ${thought.expression} body\nbody: ${options.join(" | ")}\n${rules.join("")}`;
}

interface Reasoning {
  /** Before the body. */
  expression: string;
  rules: string;
  /** Text that free text may not begin with, or it would be taken for reasoning. */
  excluded: string | null;
}

function reasoningRules({ reasoning, markers, markup, syntax }: RoundShape): Reasoning {
  if (markers === null) return { expression: "", rules: "", excluded: null };
  const excluded = markup.startsWithToken(markers.open) ? null : markers.open;
  if (reasoning === "no") return { expression: "", rules: "", excluded };
  const close = markers.close + (syntax.afterReasoning ?? "");
  const end = markup.until("thought", "TEXT", close);
  const messages = [`${markup.sequence(markers.open)} ${end.expression}`];
  let rules = end.rule;
  if (syntax.preamble !== undefined) {
    const text = markup.until("preamble", "TEXT", syntax.preamble.close);
    messages.push(`${markup.sequence(syntax.preamble.open)} ${text.expression}`);
    rules += text.rule;
  }
  const more = messages.length === 1 ? messages[0]! : `(${messages.join(" | ")})`;
  const repeated = syntax.afterReasoning === undefined ? "?" : `{0,${maxThoughts}}`;
  return {
    rules,
    // Between reasoning and what follows models write a blank line.
    expression: reasoning === "open" ? `${end.expression} BLANKS?` : `(${more} BLANKS?)${repeated}`,
    excluded: reasoning === "open" ? null : excluded,
  };
}

/** What begins the first call, up to where its own text starts. */
function openingOf({ sectionOpen, callOpen }: CallSyntax): string {
  return sectionOpen + callOpen;
}

/**
 * What is no answer: blanks, reasoning, and what the parser would read as a call. Control tokens are in no text.
 * One expression: the mask engine's first step is too dear for several.
 */
function noAnswer({ syntax, tools, markup }: RoundShape, reasoning: string | null): string {
  const blanks = "[ \\n\\t\\r]*";
  const names = tools.map(({ name }) => escapeRegex(name)).join("|");
  // The opening of some formats; models of others write it, too.
  const calls = [`\\{[ \\n]{0,4}"name": ?"(${names})`];
  // A list's bracket behind the marker says no more.
  const opening = openingOf(syntax).trim().replace(/\[$/u, "");
  const isMarker = opening !== "" && !opening.startsWith("{");
  if (isMarker && !markup.startsWithToken(opening)) calls.push(escapeRegex(opening));
  // An answer in words begins with none of them; a call that is spelled wrong does.
  const starts = ["\\{", "<", "`", ...(reasoning === null ? [] : [escapeRegex(reasoning)])];
  return `${blanks}|${blanks}(${starts.join("|")}).*|.*(${calls.join("|")}).*`;
}

function callRules({ syntax, tools, parallel, markup }: RoundShape): string {
  const close = markup.sequence(syntax.callClose);
  const next = markup.sequence(syntax.separator + syntax.callOpen);
  const others = parallel && next !== "" ? `(${next} call ${close}){0,${maxCalls - 1}}` : "";
  const rules = tools.map((tool, index) => toolRule(syntax, tool, index, markup));
  return [
    `first_call: call ${close} ${others} ${markup.sequence(syntax.sectionClose)}\n`,
    `call: ${tools.map((_, index) => `tool_${index}`).join(" | ")}\n`,
    ...rules,
  ].join("");
}

function toolRule(
  syntax: CallSyntax,
  tool: { name: string; schema: JsonObject },
  index: number,
  markup: Markup,
): string {
  const parts: string[] = [];
  let text = "";
  const flush = (): void => {
    if (text !== "") parts.push(markup.sequence(text));
    text = "";
  };
  const { body, argumentStyle: style } = syntax;
  let rules = "";
  for (const [at, part] of body.entries()) {
    if (typeof part === "string") text += part;
    else if (part.part === "name") text += tool.name;
    else {
      flush();
      if (part.part === "id") {
        parts.push(regexTerminal(part.pattern));
        continue;
      }
      const behind = body.slice(at + 1).filter((rest) => typeof rest === "string");
      const values = argumentRules(style, tool.schema, `args_${index}`, behind.join(""), markup);
      parts.push(values.expression);
      rules = values.rules;
      if (style.style === "parameters") break;
    }
  }
  flush();
  return `tool_${index}: ${parts.join(" ")}\n${rules}`;
}

/**
 * @param schema of an object, as `compileSchema` writes it
 * @param name of the rules, which begin with it
 * @param behind text behind them, which is part of the rules of parameters
 */
function argumentRules(
  style: ArgumentStyle,
  schema: JsonObject,
  name: string,
  behind: string,
  markup: Markup,
): Rules {
  switch (style.style) {
    case "json":
      return { expression: jsonValue(schema, escapedSeparators(style)), rules: "" };
    case "parameters":
      return new ParameterWriter(style, schema, behind, markup).write(schema, name);
    case "python":
      return new LiteralWriter("python", schema, name, markup).keywordArguments();
    case "bare-keys":
      return new LiteralWriter(style, schema, name, markup).object();
  }
}
