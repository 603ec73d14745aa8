/** The models that requests may name, in memory or not, as the lists of each API tell them. */

import { createHash } from "node:crypto";
import type { ModelHeader, ModelState } from "../../models/types.ts";
import type { LoadedModel, ServerServices } from "../services.ts";
import { answer, choice, list, string, type ValueOf, whole } from "../body/shapes.ts";
import { calledName, namesOf } from "./target.ts";

export type ListServices = Pick<ServerServices, "model" | "engine" | "chat" | "models">;

export interface KnownModel {
  /** In requests; the first is its own. */
  names: string[];
  /** Unix seconds of the file's last change. */
  created: number;
  /** Of the file. */
  bytes: number;
  state: ModelState;
  /** Of a load, 0 .. 1. */
  progress: number;
  /** What uses it. */
  uses: number;
  /** When it leaves memory, in milliseconds since 1970. Null: nothing is planned. */
  leavesAt: number | null;
  /** It is the only one, or agents need it: it never leaves. */
  isPinned: boolean;
  /** Null: it is not in memory. */
  loaded: Omit<LoadedModel, "sampling"> | null;
  /** What the file says; null where it cannot be loaded. */
  header(): ModelHeader | null;
}

/** In order of names. */
export function knownModels({ model, engine, chat, models }: ListServices): KnownModel[] {
  if (models === undefined) {
    const { sizeBytes: bytes } = engine.model;
    const at = { state: "loaded", progress: 1, uses: 0, leavesAt: null, isPinned: true } as const;
    const loaded = { model, engine, chat };
    return [
      { names: namesOf(model), created: model.created, bytes, ...at, loaded, header: () => null },
    ];
  }
  return models.list().map(({ file, model: loaded, waiting: _waiting, ...known }) => ({
    ...known,
    names: file.name === model.id ? namesOf(model) : [file.name],
    created: file.created,
    bytes: file.bytes,
    loaded,
    header: () => file.describe(),
  }));
}

/** Null: there is none of this name. `default` is one. */
export function knownModel(name: string, services: ListServices): KnownModel | null {
  const known = knownModels(services);
  const of = (wanted: string): KnownModel | undefined =>
    known.find(({ names }) => names.includes(wanted === "default" ? services.model.id : wanted));
  return of(calledName(name, (one) => of(one) !== undefined)) ?? null;
}

export const modelDetails = answer(
  {
    parent_model: string,
    format: choice("gguf"),
    family: string,
    families: list(string),
    parameter_size: string,
    quantization_level: string,
  },
  {
    // Of a sequence here; of a model that is not in memory, what it was trained for, where the file says so.
    context_length: whole,
    // Of a model in memory.
    embedding_length: whole,
  },
);

/** Of Ollama's list. */
export const listedModelShape = {
  name: string,
  model: string,
  modified_at: string,
  // In bytes.
  size: whole,
  digest: string,
  details: modelDetails,
};

type ListedModel = {
  [Name in keyof typeof listedModelShape]: ValueOf<(typeof listedModelShape)[Name]>;
};

/** An entry of Ollama's list. */
export function listedModel(name: string, known: KnownModel): ListedModel {
  return {
    name,
    model: name,
    modified_at: modifiedAt(known),
    size: known.bytes,
    digest: digestOf(known),
    details: detailsOf(known),
  };
}

/** Of what tells models apart; the file itself is not read for it. */
function digestOf({ names, bytes, created }: KnownModel): string {
  return createHash("sha256")
    .update(JSON.stringify([names[0], created, bytes]))
    .digest("hex");
}

export function modifiedAt({ created }: Pick<KnownModel, "created">): string {
  return new Date(created * 1000).toISOString();
}

/** Parameters are counted once the model is in memory. */
export function detailsOf({ loaded, header }: KnownModel): ValueOf<typeof modelDetails> {
  const said = loaded === null ? header() : null;
  const family = loaded?.engine.model.architecture ?? said?.architecture ?? "";
  const context = loaded?.model.contextSize ?? said?.trainedContext;
  return {
    parent_model: "",
    format: "gguf",
    family,
    families: [family],
    parameter_size: loaded === null ? "" : shortCount(loaded.engine.model.parameterCount),
    quantization_level:
      loaded === null ? (said?.quantization ?? "") : quantizationOf(loaded.engine.model.fileType),
    ...(context === undefined ? {} : { context_length: context }),
    ...(loaded === null ? {} : { embedding_length: loaded.engine.model.embeddingSize }),
  };
}

/** 1_540_000_000 -> 1.5B, as Ollama writes it. */
function shortCount(count: number): string {
  if (count >= 1e9) return `${(count / 1e9).toFixed(1)}B`;
  return count >= 1e6 ? `${(count / 1e6).toFixed(2)}M` : `${(count / 1e3).toFixed(2)}K`;
}

/** `Q4_K - Medium` -> `Q4_K_M`. */
function quantizationOf(fileType: string): string {
  return fileType.replace(/ - (Small|Medium|Large)$/, (_, size: string) => `_${size[0]}`);
}

/** Every template takes tools, with a section of its own or without; of a file it is only known whether there is one. */
export function capabilitiesOf({ loaded, header }: KnownModel): string[] {
  const template = loaded === null ? (header()?.chatTemplate ?? null) : null;
  const takesTools =
    loaded === null ? template !== null : (loaded.model.toolSection ?? null) !== null;
  const thinks =
    loaded === null ? /enable_thinking|<think>/.test(template ?? "") : loaded.chat.mayThink;
  return ["completion", ...(takesTools ? ["tools"] : []), ...(thinks ? ["thinking"] : [])];
}
