/** Everything that `fermata doctor` finds out, as plain data. */

import { accessSync, constants, existsSync } from "node:fs";
import { dirname } from "node:path";
import { openTemplate } from "../../chat/prompt/prompt.ts";
import { checkGguf } from "../../engine/gguf-check.ts";
import { FermataError } from "../../errors.ts";
import { needsKey, withAccess } from "../access.ts";
import { type ChatText, chatText } from "../banner.ts";
import { configLayers } from "../options/config.ts";
import { defaultModel } from "../models-folder.ts";
import { flagOf } from "../options/option-table.ts";
import type { Layer } from "../options/option-values.ts";
import type { ServeConfig } from "../options/serve-options.ts";
import { packageVersion, storePath } from "../folders.ts";
import { assertPortFree } from "../port.ts";
import { bytesText } from "../progress.ts";
import { type Machine, readMachine } from "./machine.ts";
import { type Build, examineBuild } from "./examine-build.ts";
import { examineFiles, type Finding, findingOf } from "./examine-files.ts";
import { isPostgresAddress } from "../../store/postgres/address.ts";
import { totalOf } from "../../engine/fit.ts";
import { fitModel } from "../../engine/load.ts";
import type { NativeLoadOptions, NativeMemoryNeeds } from "../../native/addon-types.ts";
import { engineOptionsOf, withFlags } from "../options/engine-config.ts";

export interface Diagnosis {
  fermata: string;
  machine: Machine;
  build: Build | null;
  model: ModelFit | null;
  /** How tools reach the model, or that it cannot chat. Null: there is no model, or the template is broken. */
  chat: ChatText | null;
  /** Parameters of the largest model in Q4_K_M that fits beside its cache; about. */
  largestParameters: number;
  settings: Setting[];
  findings: Finding[];
}

interface Setting {
  option: string;
  value: string;
  /** `flag`, `environment`, `fermata.json` or `default`. */
  from: string;
  why: string;
}

/** Of a model's memory in Q4_K_M, a parameter and its share of cache and buffers. */
const bytesPerParameter = 0.75;
/** What is left to everything else. */
const usableShare = 0.85;

/** @param config of `--hf` too, `model` is the path; undefined: it is not pulled */
export async function examine(
  config: ServeConfig,
  input: { flags: Layer; env: NodeJS.ProcessEnv; cwd: string },
): Promise<Diagnosis> {
  const findings: Finding[] = [];
  const machine = readMachine();
  const build = examineBuild(machine, findings);
  const model = build === null ? null : await examineModel(config, machine, findings);
  const chat = model === null ? null : examineChat(model.path, config, findings);
  await examinePlace(config, findings);
  if (config.threads !== undefined && config.threads > machine.cores) {
    findings.push({
      level: "warning",
      what: `--threads ${config.threads} is more than the ${machine.cores} cores that this process may use`,
      remedy: `leave it out: the default is ${machine.cores}`,
    });
  }
  examineAccess(config, findings);
  findings.push(...examineFiles(config, input.env));
  return {
    fermata: packageVersion(),
    machine,
    build,
    model,
    chat,
    largestParameters: Math.floor((machine.availableBytes * usableShare) / bytesPerParameter),
    settings:
      model === null
        ? []
        : settingsOf(model, config, configLayers(input.flags, input.env, input.cwd)),
    findings,
  };
}

function examineAccess(config: ServeConfig, findings: Finding[]): void {
  const remedy = "give --api-key @FILE, or listen on 127.0.0.1";
  try {
    const open = withAccess(config);
    const { auth, host } = open;
    if (needsKey(open) || auth) return;
    findings.push({
      level: "warning",
      what: `other machines may reach ${host} and need no key`,
      remedy,
    });
  } catch (error) {
    findings.push(findingOf(error, remedy));
  }
}

async function examineModel(
  config: ServeConfig,
  machine: Machine,
  findings: Finding[],
): Promise<ModelFit | null> {
  if (config.hf !== undefined && config.model === undefined) {
    findings.push({
      level: "warning",
      what: `${config.hf} is not pulled yet, so nothing is known of the model`,
      remedy: "pull it with fermata pull, or start the server, which pulls it",
    });
    return null;
  }
  let model: ModelFit;
  try {
    model = await measureFit(defaultModel(config).path, config);
  } catch (error) {
    findings.push(findingOf(error, remedyFor(error)));
    return null;
  }
  const { neededBytes, cacheBytes } = model;
  if (neededBytes > machine.availableBytes) {
    const smaller =
      cacheBytes > neededBytes / 3
        ? "a smaller --ctx-size, --parallel or --retained-slots, or --cache-type-k q8_0 --cache-type-v q8_0"
        : "a smaller quantization or model";
    findings.push({
      level: "error",
      what: `the model needs about ${bytesText(neededBytes)} and ${bytesText(machine.availableBytes)} are available`,
      remedy: `take ${smaller}, or stop the programs that use the memory`,
    });
  }
  if (model.trainedContext !== null && model.resolved.contextSize > model.trainedContext) {
    findings.push({
      level: "warning",
      what: `--ctx-size ${model.resolved.contextSize} is more than the ${model.trainedContext} tokens it was trained for`,
      remedy: `take --ctx-size ${model.trainedContext}`,
    });
  }
  return model;
}

function examineChat(path: string, config: ServeConfig, findings: Finding[]): ChatText | null {
  const source = config.chatTemplate ?? checkGguf(path).chatTemplate;
  const toolFormat = config.toolFormat === "auto" ? undefined : config.toolFormat;
  const model = {
    chatTemplate: null,
    bosToken: "",
    eosToken: "",
    addBos: false,
    specialTokens: [],
  };
  try {
    const { template, format } = openTemplate(source, model, { toolFormat });
    const { exists: hasTemplate, hasToolSection } = template;
    if (!hasTemplate)
      findings.push({
        level: "warning",
        what: "the model has no chat template: it completes texts and cannot chat",
        remedy: "give one with --chat-template FILE, or take the instruct variant of the model",
      });
    return chatText({ hasTemplate, hasToolSection, toolFormat: format.name });
  } catch (error) {
    findings.push(findingOf(error, "give another with --chat-template FILE"));
    return null;
  }
}

async function examinePlace(config: ServeConfig, findings: Finding[]): Promise<void> {
  try {
    await assertPortFree(config.port, config.host);
  } catch (error) {
    findings.push(findingOf(error, `fermata serve --port ${config.port + 1}`, "warning"));
  }
  const path = storePath(config);
  if (path === null || isPostgresAddress(path)) return;
  let folder = existsSync(path) ? path : dirname(path);
  while (!existsSync(folder) && folder !== dirname(folder)) folder = dirname(folder);
  try {
    accessSync(folder, constants.W_OK);
  } catch {
    findings.push({
      level: "error",
      what: `conversations cannot be kept in ${path}: ${folder} may not be written`,
      remedy: "name another place with --store FILE, or --store none",
    });
  }
}

/** Where a model cannot be measured. */
function remedyFor(error: unknown): string {
  const code = error instanceof FermataError ? error.code : null;
  if (code === "rpc_server_unreachable") return "start it, or leave it out of --rpc";
  if (code === "invalid_option") return "change that option or leave it out";
  return "name another with --model, or pull one: fermata pull OWNER/NAME-GGUF";
}

function settingsOf(
  { resolved, trainedContext, layers: modelLayers, devices }: ModelFit,
  config: ServeConfig,
  layers: { name: string; values: Layer }[],
): Setting[] {
  const from = (key: string): string =>
    layers.find(({ values }) => values.has(key))?.name ?? "default";
  const setting = (key: keyof ServeConfig, value: unknown, why: string): Setting => {
    const source = from(key);
    return {
      option: `--${flagOf(key)}`,
      value: String(value),
      from: source,
      why: source === "default" ? why : "as you said",
    };
  };
  const onCpu = resolved.gpuLayers === 0;
  const hasNoDevice = devices.length === 0;
  return [
    setting(
      "threads",
      resolved.threads,
      "the physical cores: decoding gains nothing from the others",
    ),
    setting(
      "ctxSize",
      resolved.contextSize,
      resolved.contextSize === trainedContext
        ? "what the model was trained for"
        : `a quarter of the free memory holds it; the model was trained for ${trainedContext ?? "an unknown number"}`,
    ),
    setting("parallel", resolved.parallel, "sequences that decode together; more wait"),
    setting(
      "retainedSlots",
      resolved.retainedSlots,
      "as many again for held and retained sequences",
    ),
    setting(
      "cacheRam",
      resolved.cacheRamBytes / 2 ** 20,
      "a quarter of the memory that weights and slots leave, in MiB",
    ),
    setting(
      "cacheDisk",
      resolved.cacheDiskBytes / 2 ** 20,
      "files outlive a restart, in MiB; they hold what users wrote, so none unless you ask",
    ),
    setting(
      "nGpuLayers",
      resolved.gpuLayers,
      hasNoDevice
        ? "no device that may have layers: the CPU does all"
        : resolved.gpuLayers === -1
          ? "all layers fit on the GPU"
          : `of ${modelLayers} layers, as many as fit on the GPU`,
    ),
    setting(
      "kvLayout",
      resolved.kvLayout,
      onCpu ? "a CPU reads each sequence's own cells only in streams" : "a GPU shares one pool",
    ),
    setting("flashAttn", resolved.flashAttention, "on wherever the device can compute it"),
    setting("cacheTypeK", resolved.cacheTypeK, "exact; q8_0 halves the cache"),
    setting("cacheTypeV", resolved.cacheTypeV, "exact; q8_0 halves the cache"),
    setting("host", config.host, "this machine only"),
    setting("port", config.port, "as other servers of its kind"),
  ];
}

interface ModelFit {
  path: string;
  architecture: string;
  trainedContext: number | null;
  layers: number;
  weightBytes: number;
  cacheBytes: number;
  /** Of those, what a conversation takes that fills its context. */
  conversationBytes: number;
  computeBytes: number;
  /** Of those, what must be in the machine's own memory. */
  neededBytes: number;
  devices: NativeMemoryNeeds["devices"];
  /** As the engine would have them. */
  resolved: NativeLoadOptions;
}

/** @throws FermataError, as loading it would */
async function measureFit(path: string, config: ServeConfig): Promise<ModelFit> {
  const { architecture, trainedContext, layers } = checkGguf(path);
  const { resolved, needs } = await fitModel(engineOptionsOf(config, path)).catch(
    (error: unknown) => {
      throw withFlags(error);
    },
  );
  const sum = (part: "weights" | "cache" | "compute"): number =>
    [needs.host, ...needs.devices].reduce((total, parts) => total + parts[part], 0);
  return {
    path,
    architecture,
    trainedContext: trainedContext ?? null,
    layers,
    weightBytes: sum("weights"),
    cacheBytes: sum("cache"),
    conversationBytes: sum("cache") / (resolved.parallel + resolved.retainedSlots),
    computeBytes: sum("compute"),
    neededBytes: totalOf(needs.host),
    devices: needs.devices,
    resolved,
  };
}
