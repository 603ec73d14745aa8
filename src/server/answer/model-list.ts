/** What Ollama's clients are told of a model; llama-server's list of models has it too. */

import { createHash } from "node:crypto";
import type { ServerServices } from "../services.ts";

type Services = Pick<ServerServices, "model" | "engine" | "chat">;
type Described = Pick<Services["engine"]["model"], "architecture" | "fileType" | "parameterCount">;

interface ModelDetails {
  parent_model: string;
  format: string;
  family: string;
  families: string[];
  parameter_size: string;
  quantization_level: string;
}

interface ListedModel {
  name: string;
  model: string;
  modified_at: string;
  /** In bytes. */
  size: number;
  digest: string;
  details: ModelDetails;
}

/** An entry of Ollama's list. */
export function listedModel(name: string, services: Services): ListedModel {
  const { engine } = services;
  return {
    name,
    model: name,
    modified_at: modifiedAt(services),
    size: engine.model.sizeBytes,
    digest: digestOf(services),
    details: detailsOf(engine.model),
  };
}

/** Of what tells models apart; the file itself is not read for it. */
function digestOf({ model, engine }: Services): string {
  const identity = [model.id, engine.model.description, engine.model.sizeBytes];
  return createHash("sha256").update(JSON.stringify(identity)).digest("hex");
}

export function modifiedAt({ model }: Services): string {
  return new Date(model.created * 1000).toISOString();
}

export function detailsOf({ architecture, fileType, parameterCount }: Described): ModelDetails {
  return {
    parent_model: "",
    format: "gguf",
    family: architecture,
    families: [architecture],
    parameter_size: shortCount(parameterCount),
    quantization_level: quantizationOf(fileType),
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

export function capabilitiesOf({ model, chat }: Services): string[] {
  const { toolSection = null } = model;
  return [
    "completion",
    ...(toolSection === null ? [] : ["tools"]),
    ...(chat.mayThink ? ["thinking"] : []),
  ];
}
