/** Biases of texts as biases of their tokens. */

import type { Sampling } from "./types.ts";

/** It bans the token. */
export const banningBias = -100;

/** Biases of texts as those of their tokens, special tokens among them. */
export async function withTextBias(
  sampling: Partial<Sampling> | undefined,
  engine: { tokenize(text: string, guard: string, addBos: boolean): Promise<Int32Array> },
): Promise<Partial<Sampling>> {
  const { textBias = [], logitBias = [], ...others } = sampling ?? {};
  if (textBias.length === 0) return sampling ?? {};
  const biases = await Promise.all(
    textBias.map(async ([text, bias]) =>
      Array.from(await engine.tokenize(text, "", false), (token): [number, number] => [
        token,
        bias,
      ]),
    ),
  );
  return { ...others, logitBias: [...logitBias, ...biases.flat()] };
}
