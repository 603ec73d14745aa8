/** llama.cpp's grammars, which clients send as they are. */

import type { GrammarSource } from "../engine/types.ts";
import type { DocumentFormat, ReasoningMarkers } from "./types.ts";

const userRoot = "fermata-user-root";

/** As the field tells them apart: GBNF defines its rules with `::=`. */
export function isGbnf(text: string): boolean {
  return text.includes("::=");
}

/** The client's grammar, after reasoning where there is some. */
export function gbnfDocument(
  { text }: Extract<DocumentFormat, { kind: "grammar" }>,
  markers: ReasoningMarkers | null,
  reasoning: "no" | "split" | "open",
): GrammarSource {
  if (markers === null || reasoning === "no") return { kind: "gbnf", text };
  const close = JSON.stringify(markers.close);
  const thought = `fermata-thought ${close} [ \\n]*`;
  const root =
    reasoning === "open"
      ? `${thought} ${userRoot}`
      : `(${JSON.stringify(markers.open)} ${thought})? ${userRoot}`;
  const first = escapeClass(markers.close.charAt(0));
  const second = escapeClass(markers.close.charAt(1));
  return {
    kind: "gbnf",
    text: `root ::= ${root}\nfermata-thought ::= ([^${first}] | "${escapeClass(markers.close.charAt(0))}" [^${second}])*\n${renameRoot(text)}`,
  };
}

function escapeClass(character: string): string {
  return character.replace(/[\\\]^"-]/u, "\\$&");
}

/** Outside of strings, classes and comments. */
function renameRoot(text: string): string {
  const tokens = /"(?:\\.|[^"\\])*"|\[(?:\\.|[^\]\\])*\]|#[^\n]*|[a-zA-Z][a-zA-Z0-9-]*/gu;
  return text.replace(tokens, (token) => (token === "root" ? userRoot : token));
}
