/** Calls whose arguments stand between markers: how the grammar writes them and how they are read. */

import type {
  CallPart,
  CallSyntax,
  ParameterArguments,
  ValueEnd,
} from "../../guidance/call-syntax.ts";
import { byFirstCharacter, jsonObject } from "./readers/forms.ts";
import type { ParameterCalls, ParameterMarkers } from "./readers/parameter-markers.ts";
import { ParameterReader } from "./readers/parameter-reader.ts";
import type { MakeReader, UnmarkedCalls } from "./readers/reader.ts";

const jsonTypes = ["number", "boolean", "null", "object", "array"];

/** @param ends what ends a call, see `callEnds` */
export function parameterStyle(
  markers: ParameterMarkers,
  ends: readonly string[],
): ParameterArguments {
  const { key, type, value, between = "", after = "", onLines = false } = markers;
  const { hasCdata = false } = markers;
  const line = onLines ? "\n" : "";
  const middle = (typeName: string): string =>
    (type === undefined ? "" : type.open + typeName) + key[1] + between + value[0] + line;
  return {
    style: "parameters",
    open: key[0],
    middle: middle(type?.string ?? ""),
    ...(type === undefined ? {} : { middleOfOthers: middleOfOthers(type.others, middle) }),
    end: valueEnd(markers, ends),
    after,
    hasCdata,
    itemSeparator: ", ",
    keySeparator: ": ",
  };
}

/** What stands behind the last parameter, in this order. */
export function callEnds(
  body: readonly CallPart[],
  callClose: string,
  sectionClose: string,
): string[] {
  const last = body.at(-1);
  const end = typeof last === "string" ? last : "";
  return [end, callClose, sectionClose].map((text) => text.trim()).filter((text) => text !== "");
}

function valueEnd({ key, value, onLines }: ParameterMarkers, ends: readonly string[]): ValueEnd {
  return { close: value[1], line: onLines === true ? "\n" : "", followers: [key[0], ...ends] };
}

function middleOfOthers(
  others: string,
  middle: (typeName: string) => string,
): string | Record<string, string> {
  if (others !== "its name") return middle(others);
  return Object.fromEntries(jsonTypes.map((name) => [name, middle(name)]));
}

/** Models of all these formats write a JSON object, too. A call whose opening was left out begins at its name's. */
export function parameterReaders(
  markers: ParameterMarkers,
  syntax: CallSyntax,
): { reader: MakeReader; guidedReader: MakeReader; unmarked: UnmarkedCalls | null } {
  const calls = parameterCalls(markers, syntax);
  // The end of a call or a next key in a value is the value's text.
  const guided: ParameterCalls = { ...calls, implicitEnds: [], valuesClose: true };
  const parameters =
    (options: ParameterCalls): MakeReader =>
    (sink, offered) =>
      new ParameterReader(sink, options, offered);
  const read = (own: ParameterCalls): MakeReader =>
    byFirstCharacter({ "{": jsonObject }, { other: parameters(own) });
  const unmarked = {
    open: calls.nameOpen,
    reader: parameters({ ...calls, offeredOnly: true }),
    guidedReader: parameters({ ...guided, offeredOnly: true }),
  };
  return {
    reader: read(calls),
    guidedReader: read(guided),
    unmarked: calls.nameOpen === "" ? null : unmarked,
  };
}

function parameterCalls(markers: ParameterMarkers, syntax: CallSyntax): ParameterCalls {
  const own = callEnds(syntax.body, syntax.callClose, syntax.sectionClose);
  const name = syntax.body.findIndex((part) => typeof part !== "string" && part.part === "name");
  const textAt = (index: number): string => {
    const part = syntax.body[index];
    return typeof part === "string" ? part.trim() : "";
  };
  const [nameEnd = "<"] = textAt(name + 1);
  return {
    ...markers,
    nameOpen: textAt(name - 1),
    nameEnd: nameEnd === "<" ? "\n<" : nameEnd,
    valueEnd: valueEnd(markers, own),
    end: textAt(syntax.body.length - 1),
    implicitEnds: [...own, ...(markers.ends ?? [])],
    next: syntax.callOpen.trim(),
  };
}
