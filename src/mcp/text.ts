/** Text of a foreign program, made harmless to whoever shows it: a terminal, a log, a page. */

import { FermataError } from "../errors.ts";

/** Control characters that are no plain white space: C0 without tab and line ends, DEL, C1. */
// eslint-disable-next-line no-control-regex
const controls = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f]/g;
/** Invisible or reordering: zero-width, bidirectional overrides, tag characters. */
const invisible =
  /[\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff]|[\u{e0000}-\u{e007f}]/gu;
const controlPictures = 0x2400;
const deletePicture = "\u2421";
const replacement = "\ufffd";

/**
 * The same text with control characters as pictures (`␛[31m`): a terminal obeys none of them, and the
 * reader still sees that they were there.
 */
export function visibleControls(text: string): string {
  return text.replace(controls, (character) => {
    const code = character.charCodeAt(0);
    if (code < 0x20) return String.fromCharCode(controlPictures + code);
    return code === 0x7f ? deletePicture : replacement;
  });
}

/** For names, descriptions, messages and URIs: one that hides nothing, of at most `length` characters. */
export function plainText(text: string, length: number): string {
  const shown = visibleControls(text.replace(invisible, ""));
  return shown.length <= length ? shown : `${cutText(shown, length - 1)}…`;
}

/** Its beginning, never half a code point. */
export function cutText(text: string, length: number): string {
  return text.slice(0, length).replace(/[\ud800-\udbff]$/, "");
}

/** Of a line that names a program and has its last words. */
export const startErrorLength = 600;

/** What went wrong, as one short line. */
export function describeError(error: unknown, length = 300): string {
  const text = error instanceof Error ? error.message : String(error);
  return plainText(text.replace(/\s+/g, " ").trim(), length);
}

/** What the SDK says in words of its own, before it quotes a message of the server. */
const ownWords =
  /^(Received a (response|progress notification) for an unknown [a-z ]+|Unknown message type|Maximum reconnection attempts)/i;

/**
 * What went wrong, for the log: the SDK quotes whole answers and bodies in its errors, and the log holds
 * nothing of arguments and results.
 */
export function faultOf(error: unknown): string {
  if (error instanceof FermataError) return describeError(error);
  const { message, name, code, cause } = error as Error & { code?: unknown };
  const own = ownWords.exec(message)?.[0];
  if (own !== undefined) return own;
  const said = code ?? (cause as { code?: unknown } | undefined)?.code;
  return said === undefined ? name : `${name} ${String(said)}`;
}
