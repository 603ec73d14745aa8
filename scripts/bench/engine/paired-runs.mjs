import { medians } from "../report/statistics.mjs";

/** Both in turn, `runs` times. `early` is given the medians of the plain runs so far. */
export async function pairedRuns(runs, { plain, early }) {
  const all = { plain: [], early: [] };
  for (let run = 0; run < runs; run++) {
    all.plain.push(await plain());
    all.early.push(await early(medians(all.plain)));
  }
  return { plain: medians(all.plain), early: medians(all.early), runs: all };
}
