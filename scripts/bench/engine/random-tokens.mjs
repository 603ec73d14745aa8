const plainTokens = 150_000;

/** Seeded token ids, none of them special. */
export function randomTokens(count, seed) {
  let state = seed;
  return Int32Array.from({ length: count }, () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state % plainTokens;
  });
}
