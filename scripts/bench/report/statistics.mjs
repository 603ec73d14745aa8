/** The value that the fraction `part` of `values` does not exceed. */
export function quantile(values, part) {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil(part * sorted.length) - 1)];
}

function median(values) {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = Math.floor(sorted.length / 2);
  return sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

/** The median of each field over several objects with the same number fields. */
export function medians(records) {
  const fields = Object.keys(records[0]);
  return Object.fromEntries(fields.map((name) => [name, median(records.map((it) => it[name]))]));
}
