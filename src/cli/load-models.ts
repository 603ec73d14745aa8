/** From model files to what requests are answered with: one model that stays, or those of a folder. */

import type { Logger } from "pino";
import { Chat } from "../chat/chat.ts";
import { Engine } from "../engine/engine.ts";
import { checkGguf } from "../engine/gguf-check.ts";
import { ModelPool } from "../models/model-pool.ts";
import type { ModelFile } from "../models/types.ts";
import type { LoadedModel } from "../server/services.ts";
import { chatText, type ChatText } from "./banner.ts";
import { engineOptionsOf, withFlags } from "./options/engine-config.ts";
import { modelCreated, samplingOf } from "./model-files.ts";
import type { ModelsFolder } from "./models-folder.ts";
import type { ServeConfig } from "./options/serve-options.ts";
import { createProgress } from "./progress.ts";
import { SpliceStore } from "../chat/prompt/splice-store.ts";
import { RecentMap } from "../recent-map.ts";

/** A model in memory, as the program that put it there knows it. */
export interface OwnModel extends LoadedModel {
  path: string;
  engine: Engine;
  chat: Chat;
  said: ChatText;
}

export interface LoadTerms {
  config: ServeConfig;
  log: Logger;
  /** Gives a load up. */
  signal: AbortSignal;
  holdLeaseMs: number;
  /** Of models that leave and come back. */
  turns?: TurnMemories | undefined;
}

/** @param isDefault it has the aliases, the template and the format of the options */
export async function loadModel(
  file: ModelFile,
  isDefault: boolean,
  { config, log, signal, holdLeaseMs, turns }: LoadTerms,
  onProgress?: (fraction: number) => void,
): Promise<OwnModel> {
  const engine = await Engine.load(
    { ...engineOptionsOf(config, file.path), holdLeaseMs },
    { onProgress, signal },
  ).catch((error: unknown) => {
    throw withFlags(error);
  });
  try {
    logFault(engine, log);
    const toolFormat = config.toolFormat === "auto" || !isDefault ? undefined : config.toolFormat;
    const chat = new Chat(engine, {
      logger: log,
      toolFormat,
      template: isDefault ? config.chatTemplate : undefined,
      reasoning: config.reasoning,
      turns: turns?.of(file),
      stopsRepetition: config.stopRepetition,
    });
    const said = chatText(chat);
    const level = chat.hasTemplate ? "info" : "warn";
    log[level]({ tool_format: chat.toolFormat }, `${said.subject.toLowerCase()}: ${said.text}`);
    const model = {
      id: file.name,
      aliases: isDefault ? config.alias.slice(1) : [],
      created: modelCreated(file.path),
      contextSize: engine.cache.cellsPerSequence,
      parallel: config.parallel,
      vocabularySize: engine.model.vocabularySize,
      maxTokens: config.nPredict < 0 ? undefined : config.nPredict,
      toolSection: chat.hasTemplate ? (chat.hasToolSection ? "template" : "generic") : null,
      toolFormat: chat.toolFormat,
    } as const;
    const sampling = samplingOf(file.path, checkGguf(file.path).sampling);
    return { path: file.path, engine, chat, model, sampling, said };
  } catch (error) {
    await engine.close();
    throw error;
  }
}

/** With progress on standard error, as at the start of the program. */
export async function loadWithProgress(
  load: (onProgress: (fraction: number) => void) => Promise<OwnModel>,
): Promise<OwnModel> {
  const progress = createProgress(process.stderr);
  try {
    return await load(progress.update);
  } finally {
    progress.end();
  }
}

/** The models of a folder; none is in memory yet. */
export function openPool(
  folder: ModelsFolder,
  standard: ModelFile,
  terms: LoadTerms,
): ModelPool<OwnModel> {
  const { config, log } = terms;
  const turns = new TurnMemories();
  let isFirst = true;
  return new ModelPool<OwnModel>({
    most: config.modelsMax,
    keepAliveMs: config.keepAlive * 1000,
    files: () => {
      const others = folder.files().filter(({ path }) => path !== standard.path);
      // The name of the default model stands for it alone.
      return [standard, ...others.filter(({ name }) => name !== standard.name)];
    },
    async load(file, { signal, onProgress }) {
      const startedAt = performance.now();
      const load = (also?: (fraction: number) => void): Promise<OwnModel> =>
        loadModel(
          file,
          file.path === standard.path,
          { ...terms, turns, signal: AbortSignal.any([signal, terms.signal]) },
          (fraction) => (onProgress(fraction), also?.(fraction)),
        );
      const loaded = await (isFirst ? loadWithProgress(load) : load());
      isFirst = false;
      const seconds = Math.round((performance.now() - startedAt) / 100) / 10;
      log.info({ model: file.name, seconds }, "model loaded");
      return loaded;
    },
    async unload({ engine, model }) {
      await engine.close();
      log.info({ model: model.id }, "model unloaded");
    },
  });
}

/** Of the files that the cache is in: once, nothing fails for it. */
function logFault(engine: Engine, log: Logger): void {
  let isLogged = false;
  const look = (): void => {
    if (isLogged) return;
    const { diskFault } = engine.stats();
    if (diskFault === "") return;
    isLogged = true;
    log.warn({ fault: diskFault }, "the context cache does not reach its files");
  };
  engine.onStep(look);
  // The files were opened before the first command, and what the engine says of itself is renewed after each.
  const second = engine.checkIntegrity().then(() => engine.checkIntegrity());
  second.then(look, () => {});
}

/** Of a folder with many models, so many keep what they generated while they are away. */
const mostFiles = 16;

/** The generated turns of each model file: a conversation finds its own again after its model was away. */
export class TurnMemories {
  readonly #stores = new RecentMap<string, SpliceStore>(mostFiles);

  /** A file that was replaced has another vocabulary, maybe: it begins anew. */
  of({ path, bytes, created }: Pick<ModelFile, "path" | "bytes" | "created">): SpliceStore {
    const key = JSON.stringify([path, bytes, created]);
    const store = this.#stores.get(key) ?? new SpliceStore();
    this.#stores.set(key, store);
    return store;
  }
}
