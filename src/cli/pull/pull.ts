/** `fermata pull`, and the pulling before `fermata serve --hf`. */

import { join } from "node:path";
import type { CommandContext, ParsedArguments } from "../commands/command.ts";
import { ownOptions } from "../options/option-values.ts";
import type { ServeConfig } from "../options/serve-options.ts";
import { pulledModelsFolder } from "../folders.ts";
import { hubOptions, pullOptions } from "../commands/commands.ts";
import { bytesText, type ProgressOutput, TransferProgress } from "../progress.ts";
import { invalidOption } from "../../errors.ts";
import { groupModelFiles } from "../model-files.ts";
import { acquireLock, CachedFile, cachedPaths, revisionFolder } from "./cache-folder.ts";
import { chooseFiles, type WantedModel } from "./choose-files.ts";
import { download } from "./download.ts";
import { Hub, type HubFile, isUnreachable } from "./hub.ts";
import { onFirstSignal } from "../signals.ts";

/** The path goes to standard output, everything else to standard error. @throws FermataError */
export async function runPull(
  { values, operands }: ParsedArguments,
  context: CommandContext,
): Promise<number> {
  const options = ownOptions(pullOptions, values, context);
  const request = {
    ...options,
    model: operands[0]!,
    modelsFolder: options.modelsDir ?? pulledModelsFolder(context.env),
  };
  return interruptible(async (signal) => {
    const pull = { signal, output: progressOutput(context) };
    const lines = options.list
      ? await listRepository(request, pull)
      : [await pullModel(request, pull)];
    for (const line of lines) context.out(`${line}\n`);
    return 0;
  });
}

/** `config` with the path of what `--hf` names. @throws FermataError */
export async function withPulledModel(
  config: ServeConfig,
  context: CommandContext,
): Promise<ServeConfig> {
  const { hf, file, modelsDir } = config;
  if (hf === undefined) return config;
  const hub = ownOptions(hubOptions, new Map(), context);
  const modelsFolder = modelsDir ?? pulledModelsFolder(context.env);
  const model = await interruptible((signal) =>
    pullModel(
      { ...hub, model: hf, file, modelsFolder },
      { signal, output: progressOutput(context) },
    ),
  );
  return { ...config, model };
}

/** `config` with the path of what `--hf` names, if it is here already. The hub is not asked. @throws FermataError invalid_option */
export function withCachedModel(
  config: ServeConfig,
  context: Pick<CommandContext, "env" | "cwd">,
): ServeConfig {
  const { hf, file, modelsDir } = config;
  if (hf === undefined) return config;
  const { revision } = ownOptions(hubOptions, new Map(), context);
  const wanted = readWanted({ model: hf, file });
  const models = modelsDir ?? pulledModelsFolder(context.env);
  const folder = revisionFolder(models, wanted.repository, revision);
  return { ...config, model: chooseCached(folder, wanted) ?? undefined };
}

/** SIGINT and SIGTERM end it, and leave what is there for the next time. */
async function interruptible<T>(work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const stop = new AbortController();
  const off = onFirstSignal(["SIGINT", "SIGTERM"], () => stop.abort());
  try {
    return await work(stop.signal);
  } finally {
    off();
  }
}

function progressOutput({ err }: CommandContext): ProgressOutput {
  return {
    write: err,
    isTerminal: process.stderr.isTTY,
    columns: () => process.stderr.columns ?? 80,
  };
}

interface PullRequest {
  /** `OWNER/NAME` or `OWNER/NAME:QUANT`. */
  model: string;
  file: string | undefined;
  revision: string;
  token: string | undefined;
  endpoint: string;
  modelsFolder: string;
  /** For tests: of the first wait after a cut. */
  firstWaitMs?: number;
}

interface PullContext {
  signal: AbortSignal;
  output: ProgressOutput;
}

/**
 * Everything that the model consists of is here and whole. Resolves to the first file's path.
 * A hub that cannot be reached, or answers nobody now, does not matter if the model is here.
 * @throws FermataError
 */
export async function pullModel(request: PullRequest, context: PullContext): Promise<string> {
  const wanted = readWanted(request);
  const hub = openHub(request, wanted, context);
  const folder = revisionFolder(request.modelsFolder, wanted.repository, request.revision);
  let files: HubFile[];
  try {
    files = chooseFiles(await hub.files(), wanted);
  } catch (error) {
    if (!isUnreachable(error)) throw error;
    const cached = chooseCached(folder, wanted);
    if (cached === null) throw error;
    context.output.write(`${error.message} ${cached} is here already.\n`);
    return cached;
  }
  await pullFiles(hub, files, folder, request, context);
  return new CachedFile(folder, files[0]!.path).path;
}

/** One line per model: name, quantization, parts, size. */
async function listRepository(request: PullRequest, context: PullContext): Promise<string[]> {
  const wanted = readWanted(request);
  const files = await openHub(request, wanted, context).files();
  const size = new Map(files.map((file) => [file.path, file.size]));
  return groupModelFiles([...size.keys()]).map(({ first, paths }) => {
    const bytes = paths.reduce((sum, path) => sum + size.get(path)!, 0);
    const parts = paths.length > 1 ? `  ${paths.length} parts` : "";
    return `${first}  ${bytesText(bytes)}${parts}`;
  });
}

async function pullFiles(
  hub: Hub,
  files: readonly HubFile[],
  folder: string,
  { firstWaitMs }: PullRequest,
  { signal, output }: PullContext,
): Promise<void> {
  const total = files.reduce((sum, { size }) => sum + size, 0);
  const progress = new TransferProgress(output, total);
  let before = 0;
  try {
    for (const [index, file] of files.entries()) {
      const name = file.path.slice(file.path.lastIndexOf("/") + 1);
      const label = files.length === 1 ? name : `${name} (${index + 1} of ${files.length})`;
      const target = new CachedFile(folder, file.path);
      const release = await acquireLock(target.lockPath, signal, (holder) =>
        progress.note(`${name} is being pulled by ${holder}. Waiting.`),
      );
      try {
        // Whoever held the lock may have brought it.
        if (!target.holds(file)) {
          await download(hub, file, target, {
            signal,
            firstWaitMs,
            onBytes: (bytes) => progress.update(label, before + bytes),
            onCut: (reason, waitMs) =>
              progress.note(`${reason}. Going on in ${(waitMs / 1000).toFixed(0)} s.`),
          });
        }
      } finally {
        release();
      }
      before += file.size;
    }
  } finally {
    progress.end();
  }
}

function openHub(
  { revision, token, endpoint }: PullRequest,
  { repository }: WantedModel,
  { signal }: PullContext,
): Hub {
  return new Hub({ endpoint, token, repository, revision, signal });
}

function readWanted({ model, file }: Pick<PullRequest, "model" | "file">): WantedModel {
  const address = model.replace(/^(https?:\/\/[^/]+\/|hf:\/*)/, "").replace(/\/+$/, "");
  const colon = address.indexOf(":");
  if (colon < 0) return { repository: address, file, quantization: undefined };
  const quantization = address.slice(colon + 1);
  if (file !== undefined) {
    throw invalidOption(
      `--file and :${quantization} exclude each other. Name the model one way.`,
      "file",
    );
  }
  return { repository: address.slice(0, colon), file, quantization };
}

/** Null: it is not here, not whole, or it is not clear which. */
function chooseCached(folder: string, wanted: WantedModel): string | null {
  const checksum = { kind: "sha256", value: "" } as const;
  const files = cachedPaths(folder).map((path) => ({ path, size: 0, checksum }));
  try {
    return join(folder, ...chooseFiles(files, wanted)[0]!.path.split("/"));
  } catch {
    return null;
  }
}
