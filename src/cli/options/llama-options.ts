/** Options of llama.cpp, under llama-server's names: where weights go, how positions are stretched, sizes of batches. */

import type { LlamaOptions } from "../../engine/types.ts";
import { invalidOption } from "../../errors.ts";
import { inGroup, type ValuesOf } from "./option-table.ts";

const mostLayers = 10_000;
const largest = 1e12;

export const llamaOptions = inGroup("Devices and llama.cpp", {
  rpc: {
    kind: "list",
    split: true,
    value: "HOST:PORT",
    help: 'Machines that run "fermata rpc-server": their memory joins the devices, as RPC0 and so on. Weights and prompts go there unencrypted: trusted networks only.',
  },
  device: {
    kind: "list",
    short: "dev",
    split: true,
    value: "NAME",
    help: "Devices that may have layers, as CUDA0,CUDA1; none for the CPU alone. Default: all. A wrong name lists them.",
    fromFolder: true,
  },
  splitMode: {
    kind: "choice",
    short: "sm",
    choices: ["none", "layer", "row", "tensor"],
    help: "How several devices share a model: none takes one of them. Default: layer.",
    fromFolder: true,
  },
  tensorSplit: {
    kind: "list",
    short: "ts",
    split: true,
    value: "SHARES",
    help: "Shares of the devices, as 3,1. Default: by their free memory.",
    fromFolder: true,
  },
  mainGpu: {
    kind: "integer",
    short: "mg",
    min: 0,
    max: 63,
    value: "INDEX",
    help: "Which of the devices has all with --split-mode none. Default: 0.",
    fromFolder: true,
  },
  overrideTensor: {
    kind: "list",
    short: "ot",
    split: true,
    value: "PATTERN=BUFFER",
    help: "Where tensors go whose names a regular expression finds, as exps=CPU. Repeatable; a wrong buffer lists them.",
    fromFolder: true,
  },
  cpuMoe: {
    kind: "boolean",
    short: "cmoe",
    default: false,
    help: "Keep the weights of all experts on the CPU.",
    fromFolder: true,
  },
  nCpuMoe: {
    kind: "integer",
    short: "ncmoe",
    min: 0,
    max: mostLayers,
    value: "N",
    help: "Keep the weights of the experts of the first N layers on the CPU.",
    fromFolder: true,
  },
  mmap: {
    kind: "boolean",
    default: true,
    help: "Map the model's file instead of reading it into memory, where the devices allow it.",
    fromFolder: true,
  },
  mlock: {
    kind: "boolean",
    default: false,
    help: "Keep the weights from being swapped; the system's limit of locked memory must allow it.",
    fromFolder: true,
  },
  batchSize: {
    kind: "integer",
    short: "b",
    min: 1,
    max: 16_384,
    value: "ROWS",
    help: "Rows that a step computes, --parallel at least: prompts are read in such pieces. Default: 512.",
    fromFolder: true,
  },
  ubatchSize: {
    kind: "integer",
    short: "ub",
    min: 1,
    max: 16_384,
    value: "ROWS",
    help: "Rows of a pass over the weights, --batch-size at most. Default: 512.",
    fromFolder: true,
  },
  ropeScaling: {
    kind: "choice",
    choices: ["none", "linear", "yarn"],
    help: "How positions beyond the trained ones are reached. Default: as the file says.",
    fromFolder: true,
  },
  ropeScale: factor("Times the trained context: 1 / --rope-freq-scale.", "N", 1),
  ropeFreqBase: factor("Base frequency of RoPE. Default: as the file says.", "N"),
  ropeFreqScale: factor("Factor of RoPE's frequencies, 0.25 for four times the context.", "N"),
  yarnOrigCtx: {
    kind: "integer",
    min: 0,
    max: 2 ** 24,
    value: "TOKENS",
    help: "YaRN: context the model was trained for. Default: as the file says.",
    fromFolder: true,
  },
  yarnExtFactor: factor("YaRN: mix of extrapolation, 0 for interpolation alone.", "N", -1),
  yarnAttnFactor: factor(
    "YaRN: scale of the attention's magnitude, with --yarn-ext-factor 0; else llama.cpp has its own.",
    "N",
    -1,
  ),
  yarnBetaFast: factor("YaRN: low correction dimension.", "N", -1),
  yarnBetaSlow: factor("YaRN: high correction dimension.", "N", -1),
});

function factor(help: string, value: string, min = 0) {
  return { kind: "number", min, max: largest, value, help, fromFolder: true } as const;
}

/** As the addon takes them. @throws FermataError invalid_option */
export function llamaOptionsOf(config: ValuesOf<typeof llamaOptions>): LlamaOptions {
  const { device, rpc, tensorSplit, ropeScale, ropeFreqScale, yarnAttnFactor, yarnExtFactor } =
    config;
  if (ropeScale !== undefined && ropeFreqScale !== undefined) {
    throw invalidOption(
      "--rope-scale and --rope-freq-scale exclude each other. Give one.",
      "rope-scale",
    );
  }
  if (yarnAttnFactor !== undefined && yarnExtFactor !== 0)
    throw invalidOption("--yarn-attn-factor needs --yarn-ext-factor 0.", "yarn-attn-factor");
  return {
    rpcServers: rpc.length === 0 ? undefined : rpc,
    devices: device.length === 0 ? undefined : device,
    splitMode: config.splitMode,
    tensorSplit: tensorSplit.length === 0 ? undefined : tensorSplit.map(share),
    mainGpu: config.mainGpu,
    overrideTensor: overridesOf(config),
    mmap: config.mmap,
    mlock: config.mlock,
    ropeScaling: config.ropeScaling,
    ropeFreqBase: config.ropeFreqBase,
    ropeFreqScale: ropeScale === undefined ? ropeFreqScale : 1 / ropeScale,
    yarnOrigCtx: config.yarnOrigCtx,
    yarnExtFactor,
    yarnAttnFactor,
    yarnBetaFast: config.yarnBetaFast,
    yarnBetaSlow: config.yarnBetaSlow,
  };
}

/** What the user says comes first: the first pattern that matches counts. */
function overridesOf({
  overrideTensor,
  cpuMoe,
  nCpuMoe = 0,
}: ValuesOf<typeof llamaOptions>): LlamaOptions["overrideTensor"] {
  const given = overrideTensor.map((text) => {
    const [, pattern, buffer] = /^(.+)=([^=]+)$/.exec(text) ?? [];
    if (pattern === undefined || buffer === undefined)
      throw invalidOption(
        `--override-tensor needs PATTERN=BUFFER, not "${text}".`,
        "override-tensor",
      );
    return { pattern, buffer };
  });
  // As llama.cpp's common/common.h names the weights of experts.
  const experts = String.raw`\.ffn_(up|down|gate|gate_up)_(ch|)exps`;
  const layers = Array.from({ length: nCpuMoe }, (_, layer) => String.raw`blk\.${layer}${experts}`);
  const patterns = cpuMoe ? [experts] : layers;
  return [...given, ...patterns.map((pattern) => ({ pattern, buffer: "CPU" }))];
}

function share(text: string): number {
  const value = Number(text);
  if (text.trim() !== "" && value >= 0 && Number.isFinite(value)) return value;
  throw invalidOption(`--tensor-split needs numbers, as 3,1, not "${text}".`, "tensor-split");
}
