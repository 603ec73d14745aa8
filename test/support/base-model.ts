// A base model: the shipped one without its chat template.
import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { modelPath } from "./engine.ts";

/** Writes it into a temporary folder. @returns its path */
export function writeBaseModel(): string {
  const bytes = readFileSync(modelPath);
  const key = "tokenizer.chat_template";
  // A name that nobody reads; the file's offsets stay as they are.
  bytes.write("x".repeat(key.length), bytes.indexOf(key));
  const path = join(mkdtempSync(join(tmpdir(), "fermata-base-")), "base.gguf");
  writeFileSync(path, bytes);
  return path;
}
