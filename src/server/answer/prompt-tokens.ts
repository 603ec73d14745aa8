/** A prompt's pieces as tokens. Whoever writes a prompt for these endpoints writes its special tokens too. */

import { fieldError } from "../body/field.ts";
import type { PromptInput } from "../body/prompt-inputs.ts";
import type { ServerServices } from "../services.ts";

/**
 * Special tokens of a text are recognized. An empty prompt is the token that begins a text.
 * @throws FermataError invalid_value: it is empty, and the model has no such token
 */
export async function promptTokens(
  pieces: readonly PromptInput[],
  engine: ServerServices["engine"],
): Promise<Int32Array> {
  const parts = await Promise.all(
    pieces.map((piece, index) =>
      typeof piece === "string"
        ? engine.tokenize(piece, "", index === 0 && engine.model.addBos)
        : piece,
    ),
  );
  const tokens = Int32Array.from(parts.flatMap((part) => [...part]));
  if (tokens.length > 0) return tokens;
  const { bosToken } = engine.model;
  if (bosToken !== "") return await engine.tokenize(bosToken, "", false);
  const problem = "is empty, and the model has no token that begins a text";
  throw fieldError("invalid_value", "prompt", problem, "Send a text");
}
