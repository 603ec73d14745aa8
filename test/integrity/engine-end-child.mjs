// Brings an engine of the addon into a state and ends the process, or a worker, around it.
//   node engine-end-child.mjs <state> <ending> [worker]
// With `worker` a worker does it, and the main thread then proves that the addon still works.
import { createRequire } from "node:module";
import { Worker, isMainThread, parentPort, workerData } from "node:worker_threads";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../../", import.meta.url));
const addon = createRequire(import.meta.url)(
  process.env.FERMATA_ADDON ?? `${root}build/Release/fermata.node`,
);
const modelPath = process.env.FERMATA_TEST_MODEL ?? `${root}models/fermata-small.gguf`;

const options = {
  modelPath,
  contextSize: 4096,
  parallel: 1,
  retainedSlots: 1,
  cellsTotal: 8192,
  threads: 1,
  gpuLayers: 0,
  kvLayout: "streams",
  flashAttention: "auto",
  deterministic: false,
  cacheTypeK: "f16",
  cacheTypeV: "f16",
  stepTokenBudget: 512,
  microBatch: 512,
  holdLeaseMs: 60_000,
  cacheRamBytes: 1 << 24,
  maxQueue: 4,
  audit: true,
};

const request = (id, promptLength, changes = {}) => ({
  id,
  prompt: new Int32Array(promptLength).fill(65),
  sampling: { script: new Int32Array(300).fill(66) },
  window: 4000,
  pause: { callOpen: "", callClose: "", holdAtEnd: "never", holdAtTextAfterCall: false },
  stop: [],
  retain: true,
  leaseMs: 0,
  ...changes,
});

function requestThatHolds() {
  const sampling = { script: new Int32Array([66]) };
  const pause = { callOpen: "", callClose: "", holdAtEnd: "always", holdAtTextAfterCall: false };
  return request(1, 10, { sampling, pause });
}

/** Runs until `isReached` an event, and calls `end` from within the addon's call. */
function start(isReached, end) {
  let reached = false;
  return addon.load(options, ({ events }) => {
    for (const event of events) {
      if (reached || !isReached(event)) continue;
      reached = true;
      end();
    }
  });
}

const states = {
  loading(end) {
    start(() => false);
    end();
  },
  async idle(end) {
    await start(() => false).engine;
    end();
  },
  async prefill(end) {
    const engine = await start((event) => event.kind === "progress", end).engine;
    engine.submit(request(1, 2000));
  },
  async decode(end) {
    const engine = await start((event) => event.kind === "tokens", end).engine;
    engine.submit(request(1, 10));
  },
  async guided(end) {
    const engine = await start((event) => event.kind === "tokens", end).engine;
    const grammar = await engine.compileGrammar("gbnf", "root ::= [a-z A-Z]*");
    engine.submit(request(1, 10, { grammar }));
  },
  async held(end) {
    const engine = await start((event) => event.kind === "tool_call_pause", end).engine;
    engine.submit(requestThatHolds());
  },
  /** Only the engine keeps the process alive until the end of what was released is told. */
  async released(end) {
    const isReached = (event) => {
      if (event.kind === "tool_call_pause") engine.release(event.id);
      return event.kind === "finished";
    };
    const engine = await start(isReached, end).engine;
    engine.submit(requestThatHolds());
  },
  async closing(end) {
    const { engine: loading } = start(
      (event) => event.kind === "tokens",
      () => {
        void loading.then((engine) => engine.close());
        end();
      },
    );
    (await loading).submit(request(1, 10));
  },
  async tokenizing(end) {
    const engine = await start(() => false).engine;
    void engine.tokenize("a long text ".repeat(20_000), "", false);
    end();
  },
  async compiling(end) {
    const engine = await start(() => false).engine;
    const words = Array.from({ length: 3000 }, (_, index) => `"word ${index}"`);
    // A build without llguidance refuses it.
    engine.compileGrammar("lark", `start: ${words.join(" | ")}`).catch(() => {});
    end();
  },
};

const endings = {
  exit: () => process.exit(7),
  throw: () => {
    throw new TypeError("thrown on purpose");
  },
  return: () => {},
  terminate: () => {
    parentPort.postMessage("reached");
    // Lives until it is terminated, also when its engine does not keep it alive.
    setInterval(() => {}, 60_000);
  },
};

async function proveAddonWorks() {
  let finish;
  const finished = new Promise((resolve) => (finish = resolve));
  const engine = await start(
    (event) => event.kind === "finished",
    () => finish(),
  ).engine;
  const sampling = { ...request(1, 10).sampling, script: new Int32Array([66, 66]) };
  engine.submit(request(1, 10, { sampling }));
  await finished;
  const { generatedTokens } = engine.stats();
  await engine.close();
  console.log(`generated ${generatedTokens}`);
}

const [state, ending, where] = isMainThread ? process.argv.slice(2) : workerData;
if (where === "worker" && isMainThread) {
  const worker = new Worker(fileURLToPath(import.meta.url), { workerData: [state, ending, where] });
  worker.on("message", () => void worker.terminate());
  worker.on("error", () => {});
  worker.on("exit", (code) => {
    console.log(`worker ended with ${code}`);
    void proveAddonWorks();
  });
} else {
  await states[state](() => {
    console.log("reached");
    endings[ending]();
  });
}
