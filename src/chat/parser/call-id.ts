import { randomBytes } from "node:crypto";

const LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
const LENGTH = 24;
/** The largest multiple of 62 in a byte: below it every letter is as likely. */
const FAIR = 248;

export function newCallId(): string {
  let letters = "";
  while (letters.length < LENGTH) {
    for (const byte of randomBytes(32)) {
      if (byte < FAIR && letters.length < LENGTH) letters += LETTERS.charAt(byte % LETTERS.length);
    }
  }
  return `call_${letters}`;
}
