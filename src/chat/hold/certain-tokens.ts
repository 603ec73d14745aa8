/** Tokens of a text that goes on: those that stay whatever follows. */

import type { ChatEngine, ToolOutput } from "../types.ts";
import { escapedMark, unusedCharacters } from "../template/untrusted.ts";

/** Words without a blank this long are cut in the middle: merges of tokens do not reach far. */
const MAX_WORD = 64;

/** A character that none of these has, to stand where the last one's text is not known. */
export function endMark(outputs: readonly ToolOutput[]): string {
  // Marks of renderings are taken from the other end.
  const contents = outputs.map(({ content }) => content);
  const [mark = "\ue000"] = unusedCharacters(contents, true);
  return mark;
}

/** Where the mark stands, as it is or as `tojson(ensure_ascii=true)` writes it; -1: nowhere. */
export function indexOfMark(text: string, mark: string): number {
  const plain = text.indexOf(mark);
  return plain >= 0 ? plain : text.indexOf(escapedMark(mark));
}

/**
 * Of a text that more will be appended to. The last word may merge with what follows, so it is left
 * out; behind a control token nothing merges.
 */
export async function certainTokens(
  engine: ChatEngine,
  text: string,
  guard: string,
): Promise<Int32Array> {
  const [tokens, shorter] = await Promise.all([
    engine.tokenize(text, guard, false),
    engine.tokenize(withoutLastWord(text), guard, false),
  ]);
  const different = tokens.findIndex((token, index) => token !== shorter[index]);
  const controls = new Set(
    engine.model.specialTokens.filter(({ kind }) => kind === "control").map(({ id }) => id),
  );
  const afterControl = tokens.findLastIndex((token) => controls.has(token)) + 1;
  return tokens.subarray(0, Math.max(different < 0 ? tokens.length : different, afterControl));
}

function withoutLastWord(text: string): string {
  const end = text.trimEnd().length;
  let start = end;
  while (start > 0 && end - start < MAX_WORD && text.charAt(start - 1).trim() !== "") start--;
  return text.slice(0, start).trimEnd();
}
