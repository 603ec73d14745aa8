/** What the fake model of `kill-child.mjs` says to a message: "long ..." takes about a quarter of a second. */
export function wordsOf(message) {
  const count = message.startsWith("long") ? 60 : message.length % 12;
  return Array.from({ length: count + 1 }, (_, index) => `word ${index} `);
}
