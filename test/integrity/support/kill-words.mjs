/** Each takes about 4 ms: "long ..." a quarter of a second, "endless" longer than any test. */
const counts = { long: 60, endless: 100_000 };

/** What the fake model of `kill-child.mjs` says to a message. */
export function wordsOf(message) {
  const count = counts[message.split(" ")[0]] ?? message.length % 12;
  return Array.from({ length: count + 1 }, (_, index) => `word ${index} `);
}
