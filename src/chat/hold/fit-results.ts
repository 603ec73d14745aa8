/** Cuts tool results so that the conversation, and an answer to them, fit the context. */

import type { ToolOutput } from "../types.ts";

export interface FittedOutputs<T> {
  outputs: ToolOutput[];
  /** What `measure` built of them. */
  built: T;
  truncatedCount: number;
}

export interface FitOptions<T extends { tokenCount: number }> {
  /** Builds what would be appended. */
  measure(outputs: ToolOutput[]): Promise<T>;
  countTokens(text: string): Promise<number>;
  /** Tokens that may be appended if an answer is to follow in comfort. */
  comfortable: number;
  /** Tokens that may be appended at all. */
  most: number;
}

const MAX_ATTEMPTS = 6;

export function cutMarker(characterCount: number): string {
  return `\n[… ${characterCount} characters of the tool's result were cut: they do not fit the context window …]\n`;
}

/** @returns null when nothing fits, not even markers */
export async function fitOutputs<T extends { tokenCount: number }>(
  outputs: ToolOutput[],
  options: FitOptions<T>,
): Promise<FittedOutputs<T> | null> {
  let built = await options.measure(outputs);
  if (built.tokenCount <= options.comfortable) return { outputs, built, truncatedCount: 0 };

  const counts = await Promise.all(outputs.map((output) => options.countTokens(output.content)));
  const overhead = Math.max(0, built.tokenCount - sum(counts));
  let room = options.comfortable - overhead;
  let cut = outputs;
  for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
    const shares = shareRoom(counts, Math.max(0, room));
    cut = await Promise.all(
      outputs.map(async (output, index) => ({
        ...output,
        content: await cutToTokens(
          output.content,
          counts[index] ?? 0,
          shares[index] ?? 0,
          options.countTokens,
        ),
      })),
    );
    built = await options.measure(cut);
    if (built.tokenCount <= options.comfortable || room <= 0) break;
    // What the template does to a text (escapes) changes its count.
    room -= Math.max(built.tokenCount - options.comfortable, Math.ceil(room / 8));
  }
  if (built.tokenCount > options.most) return null;
  const truncatedCount = cut.filter(
    (output, index) => output.content !== outputs[index]?.content,
  ).length;
  return { outputs: cut, built, truncatedCount };
}

/** Small ones whole; the large ones share the rest evenly. */
export function shareRoom(counts: readonly number[], room: number): number[] {
  const shares = counts.map(() => 0);
  const order = counts.map((_, index) => index).sort((a, b) => (counts[a] ?? 0) - (counts[b] ?? 0));
  let left = room;
  order.forEach((index, position) => {
    const share = Math.min(counts[index] ?? 0, Math.floor(left / (order.length - position)));
    shares[index] = share;
    left -= share;
  });
  return shares;
}

async function cutToTokens(
  text: string,
  count: number,
  share: number,
  countTokens: (text: string) => Promise<number>,
): Promise<string> {
  if (count <= share) return text;
  const room = share - (await countTokens(cutMarker(text.length)));
  let length = room <= 0 ? 0 : Math.floor((text.length * room) / count);
  while (length > 0) {
    const kept = keepCharacters(text, length);
    const result = kept + cutMarker(text.length - kept.length);
    const tokens = await countTokens(result);
    if (tokens <= share) return result;
    length = Math.min(length - 1, Math.floor((length * share) / tokens));
  }
  return cutMarker(text.length);
}

/** The text's beginning, never half a code point. */
function keepCharacters(text: string, length: number): string {
  const last = text.charCodeAt(length - 1);
  return text.slice(0, last >= 0xd800 && last <= 0xdbff ? length - 1 : length);
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}
