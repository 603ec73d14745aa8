/** The tokens of an event as a column. */

export function writtenTokens(tokens: readonly number[] = []): string | null {
  return tokens.length === 0 ? null : JSON.stringify(tokens);
}

export function readTokens(column: string | null): readonly number[] | undefined {
  return column === null ? undefined : (JSON.parse(column) as number[]);
}
