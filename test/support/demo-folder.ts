// The folder of the README's first run. Its path is part of the prompts of tests that script nothing: a fixed one
// makes the answers repeatable.
import { mkdir, readFile, writeFile } from "node:fs/promises";

export const demoFolder = "/tmp/demo/docs";
export const demoNotes = "The harbour opens at nine.\nBring the blue lantern.";

/** It stays as it is once it is there: whoever else runs tests on this machine reads it too. */
export async function makeDemoFolder(): Promise<void> {
  const file = `${demoFolder}/notes.txt`;
  const text = `${demoNotes}\n`;
  await mkdir(demoFolder, { recursive: true });
  if ((await readFile(file, "utf8").catch(() => null)) !== text) await writeFile(file, text);
}
