/** A prompt's pieces as tokens. Whoever writes a prompt for these endpoints writes its special tokens too. */

import { fieldError } from "../body/field.ts";
import type { PromptInput } from "../body/prompt-inputs.ts";
import type { ServerServices } from "../services.ts";

/**
 * Special tokens of a text are recognized. An empty prompt is the token that begins a text.
 * @param beginsText a text gets the token that texts begin with, where the model wants it
 * @throws FermataError invalid_value: it is empty, and the model has no such token
 */
export async function tokenizePrompt(
  pieces: readonly PromptInput[],
  engine: ServerServices["engine"],
  beginsText = true,
): Promise<Int32Array> {
  const parts = await Promise.all(
    pieces.map((piece, index) =>
      typeof piece === "string"
        ? engine.tokenize(piece, "", beginsText && index === 0 && engine.model.addBos)
        : piece,
    ),
  );
  const tokens = joined(parts);
  if (tokens.length > 0) return tokens;
  const { bosToken } = engine.model;
  if (bosToken !== "") return await engine.tokenize(bosToken, "", false);
  const problem = "is empty, and the model has no token that begins a text";
  throw fieldError("invalid_value", "prompt", problem, "Send a text");
}

/** A copy of memory: over a list of numbers, a prompt of 4 MiB would take the thread for long. */
function joined(parts: readonly Int32Array[]): Int32Array {
  if (parts.length === 1) return parts[0]!;
  const tokens = new Int32Array(parts.reduce((length, part) => length + part.length, 0));
  let length = 0;
  for (const part of parts) {
    tokens.set(part, length);
    length += part.length;
  }
  return tokens;
}
