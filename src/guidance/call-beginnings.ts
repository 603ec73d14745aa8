/** Where free text, or reasoning, becomes a call. */

import type { CallSyntax } from "./call-syntax.ts";
import { type Markup, type Rules, escapeRegex, literal, regexTerminal } from "./lark.ts";

interface Beginnings {
  syntax: CallSyntax;
  tools: readonly { name: string }[];
  markup: Markup;
  /** There may be several calls. */
  parallel: boolean;
}

/** What begins the first call, up to where its own text starts. */
export function openingOf({ sectionOpen, callOpen }: CallSyntax): string {
  return sectionOpen + callOpen;
}

/** Calls of other formats have a marker, which tells that one is meant. */
function isBare({ sectionOpen, callOpen }: CallSyntax): boolean {
  return sectionOpen === "" && callOpen.startsWith("{");
}

export interface FoundCall {
  name: string;
  /** Up to its arguments, from the end of what stands before it. */
  text: string;
  /** There is no text between it and a call that the grammar took. */
  isNext: boolean;
  /** It stands in reasoning that was not closed. */
  inReasoning: boolean;
  /** Whether the grammar saw lines of text before it, where the parser did, is not known. */
  isUnsure: boolean;
}

/**
 * Was this a call for the grammar, too? What the parser takes as a call and begins in another form may have been free
 * text for the grammar, so it is validated.
 */
export function isGuidedCall(syntax: CallSyntax, call: FoundCall): boolean {
  const { name, text, isNext, inReasoning, isUnsure } = call;
  const head = headOf(syntax);
  // There the opening may be text for the grammar, unless a tool's name follows.
  const isNamed = head !== null && (inReasoning || isBare(syntax));
  const begins = (opening: string): number =>
    text.indexOf((opening + (isNamed ? head : "")).trimStart() + (isNamed ? name : ""));
  if (isNext && begins(syntax.callOpen) >= 0) return true;
  const at = begins(openingOf(syntax));
  if (at < 0 || !isBare(syntax)) return at >= 0;
  return !isUnsure && text.slice(text.lastIndexOf("\n", at) + 1, at).trim() === "";
}

/** Does the parser look for calls in reasoning? They need a marker, and the message must be the same. */
export function endsReasoning(syntax: CallSyntax): boolean {
  const { sectionOpen, callOpen, afterReasoning, beforeCall } = syntax;
  const isList = /\[\s*$/u.test(sectionOpen);
  const isOneMessage = afterReasoning === undefined && beforeCall === undefined;
  return isOneMessage && (isList || !callOpen.startsWith("{"));
}

/**
 * Words and then a call. A bare call, behind words, begins a line that is not of code, and names a tool; else its
 * opening is text. An answer that begins with one is a call: small models make up names, and the mask corrects them.
 * @param free a terminal of the text
 */
export function wordsAndCall(beginnings: Beginnings, free: string): Rules {
  const { syntax, markup } = beginnings;
  const opening = openingOf(syntax);
  if (!isBare(syntax)) {
    const lead = markup.until("before_calls", free, opening);
    const marked = { expression: `${lead.expression} first_call`, rules: lead.rule };
    if (syntax.readsBare === true) return orBare(marked, beginnings, free);
    return unmarkedHead(syntax, markup) === null ? marked : orUnmarked(marked, beginnings, free);
  }
  const rules = [
    codeRules,
    noCall(beginnings),
    `LINES: (LINE | CODE)* /[ \\t]*/\n`,
    `BEFORE: ${free} & LINES & ~/[ \\n\\t]*/\n`,
    `MORE: NO_CALL & (/[^\\n]*\\n/ LINES)\n`,
    `only_call[lazy]: /[ \\n\\t]*/ ${literal(opening)}\n`,
    `before_calls[lazy]: BEFORE ${literal(opening)}\n`,
    `more_text[lazy]: MORE ${literal(opening)}\n`,
    "named_call: first_call | more_text named_call | (NO_CALL)?\n",
  ];
  return { expression: "only_call first_call | before_calls named_call", rules: rules.join("") };
}

/**
 * What stands before the name in a call whose opening the model left out, as the parser takes it; null: none is.
 */
export function unmarkedHead(syntax: CallSyntax, markup: Markup): string | null {
  const head = (headOf(syntax) ?? "").trim();
  const isRead = syntax.argumentStyle.style === "parameters" && head !== "";
  return isRead && markup.isText(head) ? head : null;
}

/** The same, or a call without its opening if it names a tool; else that is text. */
function orUnmarked(marked: Rules, { syntax, tools, markup }: Beginnings, free: string): Rules {
  const head = unmarkedHead(syntax, markup) ?? "";
  const named = tools.map(({ name }) => escapeRegex(name + afterName(syntax)));
  const lead = markup.until("before_unmarked", free, head);
  const more = markup.until("more_unmarked", "NO_NAME", head);
  const call = markup.until("more_calls", "NO_NAME", openingOf(syntax));
  const ways = [
    "first_unmarked",
    `${more.expression} unmarked_call`,
    `${call.expression} first_call`,
    "(NO_NAME)?",
  ];
  const rules = [
    marked.rules,
    `NO_NAME: TEXT & ~/(?s:(${named.join("|")}).*)/\n`,
    `unmarked_call: ${ways.join(" | ")}\n`,
    lead.rule,
    more.rule,
    call.rule,
  ];
  const expression = `${marked.expression} | ${lead.expression} unmarked_call`;
  return { expression, rules: rules.join("") };
}

/**
 * The same, or a bare object that calls a tool: at the beginning, behind one line, or as a block of code that has the
 * first backtick. It is a call from "arguments" on, and an object must follow: with other values allowed, a model that would
 * break the line behind the brace, which no arguments do here, writes one of those. What has "parameters" may be a tool's
 * definition. Elsewhere it is text here, too: the mask engine keeps one mask, so a lexeme that followed every line would
 * cost two masks a line. This one soon ends.
 */
function orBare(
  marked: Rules,
  { syntax, tools, markup, parallel }: Beginnings,
  free: string,
): Rules {
  const blanks = "[ \\n\\r\\t]*";
  const fence = "`{3}(json|tool_call)?";
  const opening = `${blanks}\\[?${blanks}\\{${blanks}"name"${blanks}:${blanks}"`;
  const before = `([^\`{<]*${fence}[ \\t]*\\n|[^\`{<\\n]*\\n)?`;
  const between = `${blanks}(,[ \\t]*\\n|\`{3}${blanks}${fence})?`;
  const more = markup.until("behind_bare", "TEXT", openingOf(syntax));
  const calls = tools.map(({ name }, index) => {
    const head = `${escapeRegex(name)}"${blanks},${blanks}"arguments"${blanks}:`;
    const value = `args_${index} BARE_END after_bare`;
    return `head_${index}[lazy]: /${head}/\nbare_${index}: head_${index} BARE_BLANKS? ${value}\n`;
  });
  const rules = [
    marked.rules,
    more.rule,
    ...calls,
    `BARE_BLANKS: /[ \\n\\r\\t]+/\n`,
    `BARE_END: /${blanks}\\}/\n`,
    `BARE: ${free} & ${regexTerminal(before + opening)}\n`,
    "first_bare[lazy]: BARE\n",
    `next_bare[lazy]: ${regexTerminal(between + opening)}\n`,
    `after_bare: ${parallel ? "next_bare bare_call | " : ""}no_bare\n`,
    `no_bare: ${more.expression} first_call | TEXT?\n`,
    `bare_call: ${calls.map((_, index) => `bare_${index}`).join(" | ")} | no_bare\n`,
  ];
  return { expression: `${marked.expression} | first_bare bare_call`, rules: rules.join("") };
}

/**
 * A text that its own marker has opened, and then a call, if what stands between them is followed by a tool's name.
 * @param beforeCall what stands between them
 */
export function markedTextAndCall(beginnings: Beginnings, beforeCall: string): Rules {
  const { syntax, markup } = beginnings;
  const opening = beforeCall + openingOf(syntax);
  const lead = markup.until("before_calls", "TEXT", opening);
  if (!markup.isText(opening))
    return { expression: `${lead.expression} first_call`, rules: lead.rule };
  const more = markup.until("more_text", "NO_CALL", opening);
  const named = `named_call: first_call | ${more.expression} named_call | (NO_CALL)?\n`;
  const rules = [noCall(beginnings), lead.rule, more.rule, named];
  return { expression: `${lead.expression} named_call`, rules: rules.join("") };
}

/**
 * Reasoning that was opened, and all that follows it: `body`. A call ends reasoning, too, if nothing follows it: models
 * forget the closing marker. Where they speak of calls, the opening is text, and reasoning goes on behind a whole call.
 */
export function reasoningAndCall(beginnings: Beginnings, close: string): Rules {
  const { syntax, markup, parallel } = beginnings;
  const opening = openingOf(syntax);
  const end = markup.until("thought", "TEXT", close);
  const call = markup.until("thought_call", "TEXT", opening);
  const closed = `${end.expression} BLANKS? body`;
  // A second call may follow only if the first was one that reasoning speaks of.
  const goesOn = parallel ? "thinking" : `BLANKS? ${markup.sequence(close)} BLANKS? body`;
  const rules = [end.rule, call.rule];
  const ways = [`first_call (BLANKS | ${goesOn})?`];
  const head = headOf(syntax);
  // Control tokens are meant.
  if (head !== null && markup.isText(opening + head)) {
    const otherEnd = markup.until("other_thought", "NO_CALL", close);
    const otherCall = markup.until("other_call", "NO_CALL", opening);
    rules.push(noCall(beginnings), otherEnd.rule, otherCall.rule);
    ways.push(`${otherEnd.expression} BLANKS? body`, `${otherCall.expression} thought_of_call`);
  }
  rules.push(
    `thinking: ${closed} | ${call.expression} thought_of_call\n`,
    `thought_of_call: ${ways.join(" | ")}\n`,
  );
  return { expression: "thinking", rules: rules.join("") };
}

/** Text behind an opening that begins no call of a tool. */
function noCall({ syntax, tools }: Beginnings): string {
  const named = tools.map((tool) => beginningOf(syntax, tool.name));
  return `NO_CALL: TEXT & ~/(?s:(${named.join("|")}).*)/\n`;
}

/** From the opening to the name, and what tells that it is the whole name: a regular expression. */
function beginningOf(syntax: CallSyntax, tool: string): string {
  return escapeRegex((headOf(syntax) ?? "") + tool + afterName(syntax));
}

/** The first character behind a name. */
function afterName(syntax: CallSyntax): string {
  const behind = syntax.body[nameIn(syntax) + 1];
  return typeof behind === "string" ? behind.slice(0, 1) : "";
}

/** Text between the opening and the name; null where there is more than text. */
export function headOf(syntax: CallSyntax): string | null {
  const before = syntax.body.slice(0, nameIn(syntax));
  return before.every((part) => typeof part === "string") ? before.join("") : null;
}

function nameIn({ body }: CallSyntax): number {
  return body.findIndex((part) => typeof part !== "string" && part.part === "name");
}

/** Lines that are no code, among them fences of blocks in which the parser looks for calls; and blocks of code. */
const codeRules = [
  "LINE: /[ \\t]*([^`\\n \\t][^\\n]*|`{1,2}([^`\\n][^\\n]*)?)?\\n/ | CALL_FENCE | /[ \\t]*`{3,}[^`\\n]+`[^\\n]*\\n/\n",
  "CALL_FENCE: /[ \\t]*`{3,}[ \\t]*([jJ][sS][oO][nN]|[tT][oO][oO][lL]_[cC][aA][lL][lL])?[ \\t]*\\n/\n",
  "CODE_FENCE: /[ \\t]*`{3,}[^`\\n]*\\n/ & ~CALL_FENCE\n",
  "CODE: CODE_FENCE /([ \\t]*([^`\\n \\t][^\\n]*|`{1,2}([^`\\n][^\\n]*)?)?\\n)*[ \\t]*`{3,}[^\\n]*\\n/\n",
].join("");
