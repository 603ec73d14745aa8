/** Tool-call formats as data. */

import type { PauseTriggers } from "../../engine/types.ts";
import type { CallSyntax } from "../../guidance/call-syntax.ts";
import type { ChatModel } from "../chat-engine.ts";
import type { ReasoningMarkers } from "../template/normalize.ts";
import type { MakeReader } from "./readers/reader.ts";

export interface ToolCallFormat {
  readonly name: string;
  /** Does a model of this template write this format? */
  detect(template: string): boolean;
  /** How the model writes calls, for the grammar. */
  readonly syntax: CallSyntax;

  /** For the parser, which is more lenient than the grammar. "" where there is none. */
  readonly sectionOpen: string;
  readonly sectionClose: string;
  readonly callOpen: string;
  readonly callClose: string;
  /** Characters between a call's end and `callClose` that models write and that say nothing. */
  readonly ignoredAfterCall: string;
  /** Reads what follows `callOpen`. */
  readonly reader: MakeReader;
  /** What opens a call where `callOpen` was left out; its reader reads the opening, too, and takes offered names only. */
  readonly unmarked: { readonly open: string; readonly reader: MakeReader } | null;
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
  /** Markers around text that say nothing to the reader: they are dropped. */
  readonly silentMarkers: readonly string[];
  /** Every message has a header that names its channel; markers and readers are not looked at. */
  readonly usesChannels: boolean;
  /** More markers that the parser must see. */
  readonly otherMarkers: readonly string[];
}

const think: ReasoningMarkers = { open: "<think>", close: "</think>" };

/** Fills in what most formats have in common. */
export function defineFormat(
  format: Pick<ToolCallFormat, "name" | "detect" | "syntax" | "reader"> & Partial<ToolCallFormat>,
): ToolCallFormat {
  const { syntax } = format;
  return {
    sectionOpen: syntax.sectionOpen.trim(),
    sectionClose: syntax.sectionClose.trim(),
    callOpen: syntax.callOpen.trim(),
    callClose: syntax.callClose.trim(),
    ignoredAfterCall: "}]",
    unmarked: null,
    bareCalls: {},
    bareSeparator: "",
    reasoning: think,
    reasoningHint: "",
    silentMarkers: [],
    usesChannels: false,
    otherMarkers: [],
    ...format,
  };
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
    reasoning.open,
    reasoning.close,
  );
  for (const part of syntax.body) if (typeof part === "string") markers.push(part);
  if (syntax.argumentStyle.style === "parameters") {
    const { open, middle, middleOfOthers = "", close } = syntax.argumentStyle;
    const others =
      typeof middleOfOthers === "string" ? [middleOfOthers] : Object.values(middleOfOthers);
    markers.push(open, middle, ...others, close);
  }
  if (syntax.argumentStyle.style === "bare-keys") markers.push(syntax.argumentStyle.stringMark);
  const ids = model.specialTokens
    .filter(({ text }) => text !== "" && text !== model.eosToken)
    .filter(({ text }) => markers.some((marker) => marker.includes(text)))
    .map((token) => token.id);
  return Int32Array.from(ids);
}
