import { makeShape } from "../../bench/shapes/make-shape.mjs";
import { shapes } from "../../bench/shapes/shape.mjs";

/** What the servers and the simulated engines have in common. */
export const engineOptions = {
  parallel: 4,
  retainedSlots: 4,
  contextSize: 6144,
  stepTokenBudget: 512,
  microBatch: 512,
  cacheRam: 1024,
};

/** The same for `fermata serve`, and what else the measured servers have. */
export function serveOptions(model) {
  const { parallel, retainedSlots, contextSize, cacheRam } = engineOptions;
  return [
    `--model=${model}`,
    `--parallel=${parallel}`,
    `--retained-slots=${retainedSlots}`,
    `--ctx-size=${contextSize}`,
    `--cache-ram=${cacheRam}`,
    "--no-drafts",
    "--no-supervise",
  ];
}

export async function modelOf(shape) {
  return (await makeShape(shapes[shape])).path;
}
