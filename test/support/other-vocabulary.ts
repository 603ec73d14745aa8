// The shipped model with other words for most of its tokens: a model of another family's vocabulary.
import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { modelPath } from "./engine.ts";

/** Writes it into a temporary folder. @returns its path */
export function writeOtherVocabulary(): string {
  const file = readFileSync(modelPath);
  const key = "tokenizer.ggml.tokens";
  // Behind the key: two kinds, a count, then each text behind its length.
  let at = file.indexOf(key) + key.length + 8;
  for (let left = file.readBigUInt64LE(at); left > 0n; left -= 1n) {
    at += 8;
    const length = Number(file.readBigUInt64LE(at));
    const text = file.subarray(at + 8, at + 8 + length);
    if (length > 1 && text[0] !== "<".charCodeAt(0))
      text.forEach((byte, i) => (text[i] = nextLetter(byte)));
    at += length;
  }
  const path = join(mkdtempSync(join(tmpdir(), "fermata-vocabulary-")), "other.gguf");
  writeFileSync(path, file);
  return path;
}

/** b for a, and a for z. */
function nextLetter(byte: number): number {
  const first = "a".charCodeAt(0);
  return byte >= first && byte < first + 26 ? first + ((byte - first + 1) % 26) : byte;
}
