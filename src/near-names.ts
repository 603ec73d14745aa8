/** Which of the known names somebody may have meant. */

const maxNames = 5;

/** The nearest first; empty when none is near. */
export function nearNames(name: string, known: readonly string[]): string[] {
  const wanted = name.toLowerCase().slice(0, 128);
  return known
    .map((candidate) => ({ candidate, distance: distanceOf(wanted, candidate.toLowerCase()) }))
    .filter(({ candidate, distance }) => distance <= Math.max(2, Math.floor(candidate.length / 3)))
    .sort((a, b) => a.distance - b.distance)
    .slice(0, maxNames)
    .map(({ candidate }) => candidate);
}

/** ` Did you mean X?` with a space before, or "". */
export function didYouMean(name: string, known: readonly string[]): string {
  const [nearest] = nearNames(name, known);
  return nearest === undefined ? "" : ` Did you mean ${nearest}?`;
}

/** Levenshtein's; 0 when one name is the other with a prefix or suffix (`read_file`, `filesystem_read_file`). */
function distanceOf(a: string, b: string): number {
  if (a.length > 2 && b.length > 2 && (a.endsWith(`_${b}`) || b.endsWith(`_${a}`))) return 0;
  let row = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const replaced = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min(replaced, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1));
    }
    row = next;
  }
  return row[b.length] ?? 0;
}
