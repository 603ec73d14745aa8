/** Tool-call formats as data: a table entry describes how a model writes calls; parser and grammar are derived from it. */

import type { PauseTriggers } from "../../engine/types.ts";
import type { ArgumentStyle, CallPart, CallSyntax } from "../../guidance/call-syntax.ts";
import type { ReasoningMarkers } from "../../guidance/types.ts";
import type { ChatModel } from "../types.ts";
import { callEnds, parameterReaders, parameterStyle } from "./parameters.ts";
import type { ParameterMarkers } from "./readers/parameter-markers.ts";
import { jsonObject } from "./readers/forms.ts";
import type { MakeReader, UnmarkedCalls } from "./readers/reader.ts";

/** Messages that say whom they are for: `open`, the name, `close`, and then the text. */
export interface Recipients {
  readonly open: string;
  readonly close: string;
  /** Ends a message, or stands behind its end, before the next one's header. */
  readonly next: string;
  /** Who gets the answer's text, and who reasoning, or "". Any other is a tool. */
  readonly text: string;
  readonly reasoning: string;
  /** End a message's text. */
  readonly ends: readonly string[];
}

export type Pair = readonly [open: string, close: string];

/** A format, as the parser of answers, the grammar and the engine use it. */
export interface ToolCallFormat {
  readonly name: string;
  /** Does a model of this template write this format? */
  detect(template: string): boolean;
  /** How the model writes calls, for the grammar. */
  readonly syntax: CallSyntax;

  /** Markers for the parser, which is more lenient than the grammar. "": none. */
  readonly sectionOpen: string;
  readonly sectionClose: string;
  readonly callOpen: string;
  readonly callClose: string;
  /** Characters that models may write between a call's end and `callClose`; they are ignored. */
  readonly ignoredAfterCall: string;
  /** Reads what follows `callOpen`. */
  readonly reader: MakeReader;
  /** The same where a grammar made the model close what it opened. */
  readonly guidedReader: MakeReader;
  readonly unmarked: UnmarkedCalls | null;
  /**
   * Calls without markers, at the start of a line or in a ```json block, by their first character. They are
   * calls if they name offered tools.
   */
  readonly bareCalls: Readonly<Record<string, MakeReader>>;
  /** May stand between two bare calls. */
  readonly bareSeparator: string;

  readonly reasoning: ReasoningMarkers;
  /** What a template with reasoning has in it, where it does not spell the markers. Default: the markers. */
  readonly reasoningHint: string;
  /** Markers that are dropped; the text between them stays. */
  readonly silentMarkers: readonly string[];
  /** Behind reasoning the model may write its answer between them; they are dropped there. "": none. */
  readonly response: Pair;
  /** Every message has a header that names its channel; markers and readers are not looked at. */
  readonly usesChannels: boolean;
  /** Every message has a header that names its recipient; the reader of calls begins at a tool's name. */
  readonly recipients: Recipients | null;
  /** More markers that the parser must see. */
  readonly otherMarkers: readonly string[];
}

type Defaulted =
  | "ignoredAfterCall"
  | "bareCalls"
  | "bareSeparator"
  | "reasoning"
  | "reasoningHint"
  | "silentMarkers"
  | "response"
  | "usesChannels"
  | "recipients"
  | "otherMarkers";

/** A format as the tables write it. */
export interface FormatEntry extends Partial<Pick<ToolCallFormat, Defaulted>> {
  name: string;
  /** A template of this format has one of these in it; of a list, all. */
  template: readonly (string | readonly string[])[];
  /** Around all calls of a turn. One that opens with a bracket is a list: the parser reads it as one call. */
  section?: Pair;
  /** Around each call. */
  call?: Pair;
  /** Between two calls. */
  separator?: string;
  /** Some of the form's models write none. */
  mayLackSeparator?: boolean;
  /** A call, with `$name`, `$arguments` and `$id`. */
  body: string;
  /** What `$id` is: a regular expression without anchors. */
  id?: string;
  /** How arguments are written. Default: as a JSON object. */
  arguments?: ArgumentStyle;
  /** Each argument stands between markers. */
  parameters?: ParameterMarkers;
  /** The answer's own markers, for the grammar. */
  answer?: Pick<
    CallSyntax,
    "textOpen" | "textClose" | "afterReasoning" | "preamble" | "beforeCall"
  >;
  /** The markers that the parser looks for, where they are not those of `call`. */
  marks?: Pair;
  /** Default: of `parameters`. */
  reader?: MakeReader;
}

export function defineFormat(entry: FormatEntry): ToolCallFormat {
  const { name, template, marks, ...more } = entry;
  const syntax = syntaxOf(entry);
  const { sectionOpen, sectionClose, callOpen, callClose } = syntax;
  const isList = listOpening.test(sectionOpen);
  const [open, close] = marks ?? [
    isList ? sectionOpen.replace(listOpening, "") : callOpen,
    isList ? sectionClose.replace(/^\s*\]/u, "") : callClose,
  ];
  const readers = entry.parameters && parameterReaders(entry.parameters, syntax);
  return {
    ignoredAfterCall: "}]",
    unmarked: readers?.unmarked ?? null,
    bareCalls: {},
    bareSeparator: "",
    reasoning: { open: "<think>", close: "</think>" },
    reasoningHint: "",
    silentMarkers: [],
    response: ["", ""],
    usesChannels: false,
    recipients: null,
    otherMarkers: [],
    ...more,
    name,
    detect: (text) => template.some((one) => [one].flat().every((part) => text.includes(part))),
    syntax,
    sectionOpen: isList ? "" : sectionOpen.trim(),
    sectionClose: isList ? "" : sectionClose.trim(),
    callOpen: open.trim(),
    callClose: close.trim(),
    reader: entry.reader ?? readers?.reader ?? jsonObject,
    guidedReader: entry.reader ?? readers?.guidedReader ?? jsonObject,
  };
}

/** For the text of a round that had the format's grammar. */
export function guidedFormat(format: ToolCallFormat): ToolCallFormat {
  const { guidedReader: reader, unmarked } = format;
  return {
    ...format,
    reader,
    unmarked: unmarked && { ...unmarked, reader: unmarked.guidedReader },
  };
}

const listOpening = /\[\s*$/u;

function syntaxOf(entry: FormatEntry): CallSyntax {
  const { section = ["", ""], call = ["", ""], separator = "", parameters } = entry;
  const { mayLackSeparator = false } = entry;
  const json = { style: "json", itemSeparator: ", ", keySeparator: ": " } as const;
  const [callClose, sectionClose] = [call[1], section[1]];
  const body = partsOf(entry);
  const ends = callEnds(body, callClose, sectionClose);
  return {
    sectionOpen: section[0],
    sectionClose,
    callOpen: call[0],
    callClose,
    separator,
    mayLackSeparator,
    readsBare: entry.bareCalls !== undefined,
    body,
    argumentStyle: entry.arguments ?? (parameters ? parameterStyle(parameters, ends) : json),
    ...entry.answer,
  };
}

function partsOf({ body, id = "" }: FormatEntry): CallPart[] {
  const places: Readonly<Record<string, CallPart>> = {
    $name: { part: "name" },
    $arguments: { part: "arguments" },
    $id: { part: "id", pattern: id },
  };
  const pieces = body.split(/(\$name|\$arguments|\$id)/u).filter((piece) => piece !== "");
  return pieces.map((piece) => places[piece] ?? piece);
}

/**
 * The format's reasoning markers if the template writes one of them: then its model may think. Vocabularies
 * have such tokens whether the model was trained to think or not, so they say nothing.
 */
export function reasoningOf(
  { reasoning, reasoningHint }: ToolCallFormat,
  template: string,
): ReasoningMarkers | null {
  const marks = [reasoning.open, reasoning.close, ...(reasoningHint === "" ? [] : [reasoningHint])];
  return marks.some((mark) => template.includes(mark)) ? reasoning : null;
}

/** A call without a closing marker ends its round, and so does a bare one: the end is held, the parse decides. */
export function pauseTriggersOf(format: ToolCallFormat): PauseTriggers {
  const [callOpen, callClose] =
    format.sectionOpen !== "" && format.sectionClose !== ""
      ? [format.sectionOpen, format.sectionClose]
      : [format.callOpen, format.callClose];
  const hasMarkers = callOpen !== "" && callClose !== "";
  return {
    callOpen: hasMarkers ? callOpen : "",
    callClose: hasMarkers ? callClose : "",
    holdAtEnd: "always",
    holdAtTextAfterCall: hasMarkers,
  };
}

/** Ids of the tokens whose spelling the parser must see; end tokens are not among them. */
export function spelledTokensOf(format: ToolCallFormat, model: ChatModel): Int32Array {
  const { sectionOpen, sectionClose, callOpen, callClose, syntax, reasoning } = format;
  const markers = [sectionOpen, sectionClose, callOpen, callClose];
  markers.push(
    format.unmarked?.open ?? "",
    ...format.otherMarkers,
    ...format.silentMarkers,
    ...format.response,
    reasoning.open,
    reasoning.close,
  );
  for (const part of syntax.body) if (typeof part === "string") markers.push(part);
  if (syntax.argumentStyle.style === "parameters") {
    const { open, middle, middleOfOthers = "", end } = syntax.argumentStyle;
    const others =
      typeof middleOfOthers === "string" ? [middleOfOthers] : Object.values(middleOfOthers);
    markers.push(open, middle, ...others, end.close);
  }
  if (syntax.argumentStyle.style === "bare-keys") markers.push(syntax.argumentStyle.stringMark);
  const ids = model.specialTokens
    .filter(({ text }) => text !== "" && text !== model.eosToken)
    .filter(({ text }) => markers.some((marker) => marker.includes(text)))
    .map((token) => token.id);
  return Int32Array.from(ids);
}
