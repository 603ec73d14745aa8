// The addon checks again what TypeScript has checked: every method with values of every other kind.
import { createRequire } from "node:module";
import { afterEach, beforeEach, expect, it } from "vitest";
import type {
  NativeAddon,
  NativeEngine,
  NativeEvent,
  NativeLoadOptions,
  NativeSubmit,
} from "../../src/native/addon-types.ts";
import { addonPath } from "../../src/native/addon.ts";
import { modelPath } from "../support/engine.ts";

const addon = createRequire(import.meta.url)(addonPath()) as NativeAddon;

const options = {
  modelPath,
  contextSize: 1024,
  parallel: 1,
  retainedSlots: 1,
  cellsTotal: 2048,
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
} as NativeLoadOptions;

let engine: NativeEngine;
let events: NativeEvent[];
beforeEach(async () => {
  events = [];
  engine = await addon.load(options, (batch) => events.push(...batch.events)).engine;
});
afterEach(() => engine.close());

let lastId = 0;
beforeEach(() => {
  lastId = 0;
});
const request = (changes: object = {}): NativeSubmit =>
  ({
    id: ++lastId,
    prompt: Int32Array.of(65, 66),
    sampling: { script: Int32Array.of(66) },
    window: 4000,
    stop: [],
    retain: true,
    leaseMs: 0,
    ...changes,
  }) as NativeSubmit;

/** Of every kind, with what a caller in a hurry would pass, and with what only one with bad intent would. */
function kinds(): unknown[] {
  const thrower = () => {
    throw new RangeError("of the caller");
  };
  const detached = Int32Array.of(65, 66);
  structuredClone(detached.buffer, { transfer: [detached.buffer] });
  const lists: unknown[][] = [
    [undefined, null, true, 0, -1, NaN, Infinity, -Infinity, 1e300, 2 ** 53, 1.5, 10n],
    [
      "",
      "x",
      "\ud800",
      Symbol("x"),
      [],
      [1],
      [[]],
      [[1, 2]],
      [["a", "b"]],
      [{}],
      Array.from({ length: 1e5 }),
    ],
    [{}, thrower, new Date(), new Proxy({}, { get: thrower }), { valueOf: thrower }],
    [new Int32Array(), Int32Array.of(-1), Int32Array.of(2 ** 31 - 1), Float32Array.of(1)],
    [new Int32Array(1 << 20), detached, new Int32Array(new SharedArrayBuffer(8))],
  ];
  return lists.flat();
}

/** Everything that the addon may say to a wrong value. The caller's own error comes back as it is. */
const refusals = ["invalid_argument", "queue_full", "not_held", "closed"];

async function isRefusedOrTaken(call: () => unknown): Promise<void> {
  try {
    await call();
  } catch (error) {
    if (error instanceof RangeError) expect(error.message).toBe("of the caller");
    else expect(refusals).toContain((error as { code?: string }).code);
  }
}

async function provesSound(): Promise<void> {
  for (let id = 1; id <= lastId; id++) engine.cancel(id);
  await expect.poll(() => engine.stats().running + engine.stats().waiting).toBe(0);
  events.length = 0;
  engine.submit(request());
  await expect.poll(() => events.at(-1)?.kind).toBe("finished");
  expect(await engine.checkIntegrity()).toBe("");
}

type Loose = Record<string, (...values: unknown[]) => unknown>;
const loose = () => engine as unknown as Loose;

it.each([
  "tokenize",
  "detokenize",
  "submit",
  "resume",
  "extend",
  "acknowledge",
  "pause",
  "release",
  "cancel",
])("%s takes or refuses values of any kind", async (name) => {
  for (const value of kinds()) {
    await isRefusedOrTaken(() => loose()[name]!(value));
    await isRefusedOrTaken(() => loose()[name]!(value, value, value));
    await isRefusedOrTaken(() => loose()[name]!(1, value));
    await isRefusedOrTaken(() => loose()[name]!("text", "", value));
    await isRefusedOrTaken(() => loose()[name]!(Int32Array.of(65), value));
  }
  await provesSound();
});

const fields: Record<string, readonly string[]> = {
  "": "id prompt begun sampling maxTokens window pause stop topLogprobs postSampling promptLogprobs marks shared retain salt leaseMs grammar forcedTokens closeAtLimit spelledTokens".split(
    " ",
  ),
  sampling:
    "temperature topK topP minP typicalP repeatPenalty frequencyPenalty presencePenalty penaltyLastN topNSigma xtcProbability xtcThreshold dynatempRange dynatempExponent mirostat mirostatTau mirostatEta minKeep ignoresEnd samplesAfterScript goesOn dry rules seed logitBias script".split(
      " ",
    ),
  pause: "callOpen callClose holdAtEnd holdAtTextAfterCall".split(" "),
};
const pause = { callOpen: "", callClose: "", holdAtEnd: "never", holdAtTextAfterCall: false };

it.each(Object.entries(fields))("fields of a request: %s", async (part, names) => {
  for (const name of names)
    for (const value of kinds()) {
      const odd = { [name]: value };
      const changes = {
        "": odd,
        sampling: { sampling: odd },
        pause: { pause: { ...pause, ...odd } },
      }[part]!;
      await isRefusedOrTaken(() => engine.submit(request({ maxTokens: 1, ...changes })));
      if (engine.stats().waiting > 2) await provesSound();
    }
  await expect.poll(() => engine.stats().running + engine.stats().waiting).toBe(0);
  expect(await engine.checkIntegrity()).toBe("");
});

it.each(Object.keys(options))("load with %s of any kind", async (name) => {
  for (const value of kinds())
    await isRefusedOrTaken(async () => {
      const small = { ...options, contextSize: 256, cellsTotal: 512, [name]: value };
      await (await addon.load(small, () => {}).engine).close();
    });
});

it.each(["submit", "resume", "extend"])(
  "%s of an object whose property closes the engine is refused",
  async (name) => {
    const closing = {
      ...request(),
      tokens: Int32Array.of(65),
      get keepPending() {
        void engine.close();
        return true;
      },
      get retain() {
        void engine.close();
        return true;
      },
    };
    expect(() => loose()[name]!(closing)).toThrow(expect.objectContaining({ code: "closed" }));
    await engine.close();
  },
);
