/** What the fake model of `kill-child.mjs` says to a message. */
export function wordsOf(message: string): string[];
