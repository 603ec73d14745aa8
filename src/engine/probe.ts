/** A trial load in a child process, which is all that dies of a damaged file. */

import { execFile } from "node:child_process";
import { existsSync, mkdirSync, statSync, writeFileSync } from "node:fs";
import { FermataError } from "../errors.ts";
import type { NativeEmbedderOptions } from "../native/addon-types.ts";
import type { CheckedModel } from "./gguf-check.ts";
import { createHash } from "node:crypto";
import { homedir } from "node:os";
import { join } from "node:path";

interface ProbeOptions {
  addonPath: string;
  signal?: AbortSignal | undefined;
}

// llama.cpp ends the process at damage that only it can see. This program is all that dies of it.
const program = `
async function probe(addonPath, modelPath, embedder) {
  const addon = require(addonPath);
  if (embedder === undefined || embedder === "mtp") addon.probe(modelPath, embedder === "mtp");
  else await (await addon.loadEmbedder(JSON.parse(embedder))).embed([Int32Array.of(0)]);
}
probe(...process.argv.slice(1)).catch((error) => {
  process.stderr.write(error.message);
  process.exitCode = { out_of_memory: 3, no_threads: 4 }[error.code] ?? 2;
});`;

/** Far longer than any disk takes. */
const timeoutMs = 10 * 60_000;
/** It runs a few lines of JavaScript; the model stands outside of its heap. */
const heapMegabytes = 128;
/** What the loader of libraries, drivers of graphics cards and temporary files need: no NODE_OPTIONS. */
const passedOn =
  /^(?:PATH|HOME|TMPDIR|TEMP|TMP|LANG|LC_\w+|SystemRoot|LD_LIBRARY_PATH|DYLD_\w+|CUDA_\w+|HIP_\w+|ROCR_\w+|GGML_\w+|LLAMA_\w+|OMP_\w+|ASAN_OPTIONS|TSAN_OPTIONS|LD_PRELOAD)$/;
/** Those prefixes have secrets too: llama-server takes its key from LLAMA_API_KEY. */
const secret = /KEY|TOKEN|SECRET|PASSWORD/i;

/** What a program that reads a file of somebody else's may know. */
function probeEnvironment(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return Object.fromEntries(
    Object.entries(env).filter(([name]) => passedOn.test(name) && !secret.test(name)),
  );
}

/**
 * Opens the model without its weights and plans a decode in a child process, once for its files and a build of the addon.
 * `parts` are of a model that {@link checkGguf} found sound; with `mtpLayers`, those behind its last layer are tried too.
 * @throws FermataError model_invalid | out_of_memory | no_threads | cancelled
 */
export async function probeModel(
  parts: CheckedModel["parts"],
  { mtpLayers = false, ...options }: ProbeOptions & { mtpLayers?: boolean },
): Promise<void> {
  await probeOnce(parts, mtpLayers ? ["mtp"] : [], options);
}

/**
 * Loads a model for vectors or scores and reads one token with it, on the processor, as {@link probeModel} does.
 * @throws FermataError model_invalid (it gives no such vectors, too) | out_of_memory | no_threads | cancelled
 */
export async function probeEmbedder(
  parts: CheckedModel["parts"],
  embedder: NativeEmbedderOptions,
  options: ProbeOptions,
): Promise<void> {
  const text = JSON.stringify({ ...embedder, gpuLayers: 0 });
  await probeOnce(parts, [text], options);
}

async function probeOnce(
  parts: CheckedModel["parts"],
  how: string[],
  { addonPath, signal }: ProbeOptions,
): Promise<void> {
  const cache = new ProbeCache();
  const key = [...parts.map(fileIdentity), fileIdentity(addonPath), ...how].join(" ");
  if (cache.has(key)) return;
  await runProbe(parts[0], [addonPath, parts[0], ...how], signal);
  cache.add(key);
}

/** `path`: what an error names. */
function runProbe(path: string, words: string[], signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    const options = {
      signal,
      maxBuffer: 16 * 1024 * 1024,
      timeout: timeoutMs,
      killSignal: "SIGKILL" as const,
      env: probeEnvironment(process.env),
    };
    const args = [`--max-old-space-size=${heapMegabytes}`, "-e", program, ...words];
    execFile(process.execPath, args, options, (error, _, stderr) => {
      if (!error) resolve();
      else if (error.killed === true && error.name !== "AbortError") {
        const message = `A trial load of ${path} took more than ${timeoutMs / 60_000} minutes. The file is damaged, or the disk is too slow.`;
        reject(new FermataError("model_invalid", message));
      } else if (error.name === "AbortError") {
        reject(new FermataError("cancelled", "Loading was cancelled."));
      } else reject(probeError(path, error.code, error.signal, stderr));
    });
  });
}

function probeError(
  path: string,
  exitCode: number | string | null | undefined,
  signal: NodeJS.Signals | null | undefined,
  stderr: string,
): FermataError {
  if (exitCode === 3) return new FermataError("out_of_memory", stderr);
  if (exitCode === 4) return new FermataError("no_threads", stderr);
  if (exitCode === "ENOMEM")
    return new FermataError("out_of_memory", `There is no memory for a trial load of ${path}.`);
  if (exitCode === "EAGAIN")
    return new FermataError(
      "no_threads",
      `The system starts no process for a trial load of ${path}. Raise the limit (ulimit -u, TasksMax of a systemd unit, pids of a container).`,
    );
  if (exitCode === 2) return new FermataError("model_invalid", stderr);
  if (signal === "SIGKILL") {
    return new FermataError(
      "out_of_memory",
      `The system killed a trial load of ${path}: the memory is probably too small.`,
    );
  }
  const assertion = stderr.split("\n").find((line) => line.includes("GGML_ASSERT"));
  const reason = assertion ?? `signal ${signal}, exit code ${exitCode}`;
  return new FermataError("model_invalid", `llama.cpp cannot run ${path}: ${reason.trim()}.`);
}

function fileIdentity(path: string): string {
  const { size, mtimeMs } = statSync(path);
  return `${path} ${size} ${mtimeMs}`;
}

/**
 * Remembers which models were probed with success: an empty file each in the user's cache folder, so
 * that processes need no lock. Where none can be written, nothing is remembered.
 */
export class ProbeCache {
  readonly #folder: string;

  constructor(folder = join(cacheHome(), "fermata", "probed")) {
    this.#folder = folder;
  }

  has(key: string): boolean {
    return existsSync(this.#file(key));
  }

  add(key: string): void {
    try {
      mkdirSync(this.#folder, { recursive: true });
      writeFileSync(this.#file(key), "");
    } catch {
      // The next start probes again.
    }
  }

  #file(key: string): string {
    return join(this.#folder, createHash("sha256").update(key).digest("hex"));
  }
}

function cacheHome(): string {
  return process.env["XDG_CACHE_HOME"] || join(homedir(), ".cache");
}
