/** Prompts known by length and digest: what continued a prompt is remembered without the prompt's text. */

import { createHash } from "node:crypto";
import type { Rendering } from "../template/template.ts";

type PromptText = Pick<Rendering, "text" | "marks">;

export interface PromptDigest {
  /** Stands in the text that the digest was made of. One character, as all guards: `length` holds for any. */
  readonly guard: string;
  readonly length: number;
  readonly digest: string;
}

export function digestOf({ text, marks: { guard } }: PromptText): PromptDigest {
  const { length } = text;
  return { guard, length, digest: digestsAt(text, [length]).get(length) ?? "" };
}

/** Which of `prompts` the rendering begins with. Its text is read once for each of their guards. */
export function findBeginnings(
  rendering: PromptText,
  prompts: readonly PromptDigest[],
): ReadonlySet<PromptDigest> {
  const found = new Set<PromptDigest>();
  for (const guard of new Set(prompts.map((prompt) => prompt.guard))) {
    const text = textWithGuard(rendering, guard);
    const asked = prompts.filter(
      (prompt) => prompt.guard === guard && prompt.length <= text.length,
    );
    const digests = digestsAt(
      text,
      asked.map(({ length }) => length),
    );
    for (const prompt of asked) if (digests.get(prompt.length) === prompt.digest) found.add(prompt);
  }
  return found;
}

/** As far as it can be told: up to where the text has that character as its own. */
function textWithGuard({ text, marks }: PromptText, guard: string): string {
  if (marks.guard === guard) return text;
  const end = text.indexOf(guard);
  return (end < 0 ? text : text.slice(0, end)).replaceAll(marks.guard, guard);
}

/** Of the text's first characters, for each of the lengths. */
function digestsAt(text: string, lengths: readonly number[]): Map<number, string> {
  const digests = new Map<number, string>();
  const hash = createHash("sha256");
  let read = 0;
  for (const length of [...new Set(lengths)].sort((one, two) => one - two)) {
    // As UTF-16: a cut between two surrogates changes nothing.
    hash.update(text.slice(read, length), "utf16le");
    digests.set(length, hash.copy().digest("base64url"));
    read = length;
  }
  return digests;
}
