/** A folder of models behind the wire: each is a script of its own, and a real pool says which are in memory. */

import { ModelPool } from "../../src/models/model-pool.ts";
import type { LoadedModel } from "../../src/server/services.ts";
import { createWorld, FakeChat, type World } from "./fake-services.ts";
import { fileOf } from "../support/model-files.ts";

interface ModelsWorld extends World {
  /** By the model's name. The default is `tiny`. */
  chats: Record<string, FakeChat>;
  pool: ModelPool<LoadedModel>;
  /** Loads and unloads in order: `+tiny`. */
  story: string[];
}

/** @param loading what a load waits for */
export function createModelsWorld({
  names = ["other", "third"],
  most = 1,
  loading = async () => {},
  ...parts
}: Omit<Parameters<typeof createWorld>[0] & object, "models"> & {
  names?: string[];
  most?: number;
  loading?: (name: string, signal: AbortSignal) => Promise<void>;
} = {}): ModelsWorld {
  const story: string[] = [];
  const chats: Record<string, FakeChat> = {};
  const files = ["tiny", ...names].map(fileOf);
  for (const { name } of files) chats[name] = new FakeChat();
  let pool: ModelPool<LoadedModel>;
  const poolOf = (standard: LoadedModel): ModelPool<LoadedModel> => {
    pool = new ModelPool<LoadedModel>({
      files: () => files,
      async load({ name }, { signal }) {
        await loading(name, signal);
        story.push(`+${name}`);
        return { ...standard, chat: chats[name]!, model: { ...standard.model, id: name } };
      },
      async unload({ model }) {
        story.push(`-${model.id}`);
      },
      most,
      keepAliveMs: -1,
    });
    return pool;
  };
  const world = createWorld({ ...parts, chat: chats["tiny"]!, models: poolOf });
  return { ...world, chats, story, pool: pool! };
}
