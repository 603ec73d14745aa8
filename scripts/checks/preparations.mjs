// What steps of `npm test` need and what takes minutes to make is made beside the steps before them, which wait more
// than they compute.
import { setUpAddon } from "../setup.mjs";
import { setUpBrowser } from "../setup/browser.mjs";
import { setUpClients } from "../setup/clients.mjs";
import { timed } from "../setup/report.mjs";
import { inBackground } from "../setup/run.mjs";
import { compileNativeTests, compileSanitizedTests } from "./native.mjs";

const makers = {
  addon: setUpAddon,
  nativeTests: () => timed("Compiling the native tests", compileNativeTests),
  addressTests: () =>
    timed("Compiling the tests for sanitize-address", () =>
      compileSanitizedTests("address,undefined"),
    ),
  threadTests: () =>
    timed("Compiling the tests for sanitize-thread", () => compileSanitizedTests("thread")),
  clients: setUpClients,
  browser: setUpBrowser,
};

/** One after the other in each: a compiler takes all processors, downloads wait for others. */
const queues = [
  ["addon", "nativeTests", "addressTests", "threadTests"],
  ["clients", "browser"],
];

export class Preparations {
  #stop = new AbortController();
  #made = new Map();
  /** The first that failed. */
  failed;

  /** Begins with what `needed` names. @param isAlone nothing runs beside */
  constructor(needed, options, isAlone) {
    for (const queue of queues) {
      let before = Promise.resolve();
      for (const name of queue.filter((each) => needed.has(each))) {
        const make = () => makers[name](options);
        before = before.then(isAlone ? make : () => inBackground(this.#stop.signal, make));
        before.catch(() => (this.failed ??= name));
        this.#made.set(name, before);
      }
    }
  }

  /** Resolves when all of `names` are made. @throws SetupError */
  async ready(names) {
    for (const name of names) await this.#made.get(name);
  }

  /** Resolves when nothing is being made any more. */
  async end() {
    this.#stop.abort();
    await Promise.allSettled(this.#made.values());
  }
}
