import { expect, it } from "vitest";
import { engineOptionsOf, withFlags } from "../../../src/cli/options/engine-config.ts";
import { resolveOptions } from "../../../src/engine/options.ts";
import { FermataError } from "../../../src/errors.ts";
import { serveConfig } from "../../support/serve-config.ts";

function llama(...args: string[]) {
  return engineOptionsOf(serveConfig(args, {}, "/"), "m.gguf");
}

it("passes llama-server's options on", () => {
  const options = llama(
    ..."--device A,B --split-mode row --tensor-split 3,1.5 --main-gpu 1 --no-mmap --mlock".split(
      " ",
    ),
    ..."--rope-scaling yarn --rope-freq-base 1e6 --rope-scale 4 --yarn-orig-ctx 32768".split(" "),
    ..."--yarn-ext-factor -1 --yarn-beta-fast 31.5 --batch-size 64 --ubatch-size 32".split(" "),
  );
  expect(options).toMatchObject({ stepTokenBudget: 64, microBatch: 32 });
  expect(options.llama).toMatchObject({
    devices: ["A", "B"],
    splitMode: "row",
    tensorSplit: [3, 1.5],
    mainGpu: 1,
    mmap: false,
    mlock: true,
    ropeScaling: "yarn",
    ropeFreqBase: 1e6,
    ropeFreqScale: 0.25,
    yarnOrigCtx: 32_768,
    yarnExtFactor: -1,
    yarnBetaFast: 31.5,
  });
});

it("passes RPC servers on, with the limit of a step for their answers", () => {
  const { llama: options } = llama("--rpc", "a:1,b:2", "--rpc=c:3", "--process-timeout=step=20");
  expect(options).toMatchObject({ rpcServers: ["a:1", "b:2", "c:3"], rpcTimeout: 20 });
  expect(llama().llama?.rpcServers).toBeUndefined();
});

it("keeps sequences in a folder or in Redis, never in both", () => {
  expect(llama("--cache-remote=redis://r")).toMatchObject({
    cacheDisk: 16_384,
    cacheRemote: "redis://r",
  });
  expect(llama("--cache-remote=redis://r", "--cache-disk=7").cacheDisk).toBe(7);
  expect(llama("--cache-disk=7").cacheRemote).toBeUndefined();
  expect(() => llama("--cache-remote=redis://r", "--cache-dir=x")).toThrow(/exclude each other/u);
});

it("takes layers as a number, all, or as many as fit", () => {
  expect(llama("--n-gpu-layers", "auto").gpuLayers).toBeUndefined();
  expect(llama("--gpu-layers", "all").gpuLayers).toBe(-1);
  expect(llama("--n-gpu-layers", "7").gpuLayers).toBe(7);
  expect(() => llama("--n-gpu-layers", "most")).toThrow(/whole number, auto or all/u);
});

it("keeps experts on the CPU, behind what the user says of tensors", () => {
  const patterns = (...args: string[]) =>
    (llama(...args).llama?.overrideTensor ?? []).map(({ pattern, buffer }) => [
      pattern,
      buffer,
      new RegExp(pattern, "u").test("blk.1.ffn_gate_exps.weight"),
    ]);
  const experts = String.raw`\.ffn_(up|down|gate|gate_up)_(ch|)exps`;
  expect(patterns("--cpu-moe")).toEqual([[experts, "CPU", true]]);
  expect(patterns("--n-cpu-moe", "2", "--override-tensor", "a=b=C")).toEqual([
    ["a=b", "C", false],
    [String.raw`blk\.0${experts}`, "CPU", false],
    [String.raw`blk\.1${experts}`, "CPU", true],
  ]);
});

it.each([
  ["--tensor-split", "1,x", /numbers/u],
  ["--override-tensor", "exps", /PATTERN=BUFFER/u],
  ["--rope-freq-base", "fast", /a number/u],
  ["--rope-freq-base", "-2", /from 0/u],
  ["--split-mode", "half", /none, layer, row, tensor/u],
  ["--cache-type-k", "q3_k", /q5_1/u],
  ["--yarn-attn-factor", "2", /needs --yarn-ext-factor 0/u],
])("%s %s is refused", (flag, value, message) => {
  expect(() => llama(flag, value)).toThrow(
    expect.objectContaining({
      code: "invalid_option",
      param: flag.slice(2),
      message: expect.stringMatching(message),
    }),
  );
});

it("names what the engine refuses by its flag", () => {
  const refused = (...args: string[]): unknown => {
    try {
      return resolveOptions(llama(...args), { trainedContext: 8192, physicalCores: 2 });
    } catch (error) {
      return withFlags(error);
    }
  };
  expect(refused("--batch-size", "2")).toMatchObject({
    message: "--batch-size must be a whole number from 4 to 16384, not 2.",
    param: "batch-size",
  });
  expect(refused("--parallel", "256", "--retained-slots", "1")).toMatchObject({
    message: "--parallel and --retained-slots may not exceed 256 together.",
  });
  // The addon's own words.
  const ofAddon = new FermataError(
    "invalid_option",
    "devices: there is no A. This build has: none.",
  );
  expect(withFlags(ofAddon)).toMatchObject({
    message: "--device: there is no A. This build has: none.",
  });
  const other = new FermataError("out_of_memory", "parallel");
  expect(withFlags(other)).toBe(other);
});
