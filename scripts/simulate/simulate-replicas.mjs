import { Clients } from "./model/clients.mjs";
import { Host } from "./model/host.mjs";
import { Random } from "./model/random.mjs";
import { Replica } from "./model/replica.mjs";
import { routers } from "./model/routers.mjs";
import { ServiceTimes } from "./model/service-times.mjs";
import { Simulation } from "./model/simulation.mjs";
import { makeSharedFiles } from "./model/engine.mjs";

/** Each replica dies after a time of its own and is back `restartMs` later. */
function letDie(simulation, replicas, { meanLifeMs, restartMs, seed }) {
  const random = new Random(seed);
  const live = (replica) =>
    simulation.after(random.exponential(meanLifeMs), () => {
      if (replicas.filter(({ isAlive }) => isAlive).length === 1) return live(replica);
      replica.die();
      simulation.after(restartMs, () => {
        replica.start();
        live(replica);
      });
    });
  replicas.forEach(live);
}

/**
 * Replicas of one calibration under one load. `begin(clients)` starts the load.
 * Options: `replicas`, `router` (a name), `sharedHost` (all on one machine), `deaths`, `untilMs`, and in `engine` what
 * differs from the calibration's. Returns { clients, replicas, simulation, sharedFiles }.
 */
export function simulateReplicas(calibration, options, begin) {
  const simulation = new Simulation();
  const times = new ServiceTimes(calibration);
  const sharedFiles = options.remote ? makeSharedFiles(calibration.parts.remote) : undefined;
  const engine = { ...calibration.engine, ...options.engine, ...(sharedFiles && { sharedFiles }) };
  const oneHost = new Host(simulation);
  const replicas = Array.from({ length: options.replicas }, (_, index) => {
    const host = options.sharedHost ? oneHost : new Host(simulation);
    return new Replica({ simulation, host, times, options: engine, name: `r${index + 1}` });
  });
  const clients = new Clients(simulation, routers[options.router](replicas));
  if (options.deaths) letDie(simulation, replicas, options.deaths);
  begin(clients);
  simulation.run(options.untilMs);
  return { clients, replicas, simulation, sharedFiles };
}
