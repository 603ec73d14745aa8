import { writeFileSync } from "node:fs";
import { describeMachine } from "../../bench/report/machine.mjs";
import { watchingIdle } from "../../bench/report/idle.mjs";
import { startReplica } from "../../bench/replicas/replica.mjs";
import { shapes } from "../../bench/shapes/shape.mjs";
import { measureSlowdowns, measureSteps } from "./engine.mjs";
import { measureParts } from "./parts.mjs";
import { measureRequests } from "./requests.mjs";
import { engineOptions, modelOf, serveOptions } from "./servers.mjs";

/** Keys and values in 16 bits. */
const bytesPerToken = ({ layers, kvHeads, headSize }) => layers * kvHeads * headSize * 2 * 2;

function simulatedEngine(shape) {
  const { cacheRam, retainedSlots, ...engine } = engineOptions;
  return {
    ...engine,
    // As an engine has them by default.
    targetItlMs: 250,
    elasticTarget: true,
    slots: engine.parallel + retainedSlots,
    ramBytes: cacheRam * 2 ** 20,
    diskBytes: 0,
    bytesPerToken: bytesPerToken(shapes[shape]),
  };
}

/** What the simulator needs of this machine. `parts`: also of Postgres, Redis, disk and proxy. */
export async function calibrate({ shape, parts, progress }) {
  const model = await modelOf(shape);
  const { rows, busy } = await watchingIdle(async () => {
    progress("steps of one engine");
    const steps = await measureSteps(model, engineOptions);
    progress("up to three engines at once");
    const slowdowns = await measureSlowdowns(model, engineOptions, 3);
    progress("requests of a server");
    const server = await startReplica("r1", serveOptions(model));
    const around = await measureRequests(server.url, engineOptions, steps);
    await server.stop();
    return { ...steps, slowdowns, ...around };
  });
  const machine = await describeMachine();
  const date = new Date().toISOString().slice(0, 10);
  const measured = { machine, date, busy, shape, engine: simulatedEngine(shape), ...rows };
  return parts ? { ...measured, parts: await measureParts(progress) } : measured;
}

export function writeJson(file, value) {
  writeFileSync(file, `${JSON.stringify(value, undefined, 2)}\n`);
}
