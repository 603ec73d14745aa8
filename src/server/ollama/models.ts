/** GET /api/version, /api/tags, /api/ps and POST /api/show, as Ollama has them. */

import { createHash } from "node:crypto";
import type { RouteOptions } from "fastify";
import { FermataError } from "../../errors.ts";
import { namesOf } from "../answer/target.ts";
import { readBody, fieldError } from "../body/field.ts";
import type { ServerServices } from "../services.ts";
import { showFields } from "./fields.ts";

/** The one whose API this follows: clients ask whether it is new enough for tools and thinking. */
const version = "0.12.6";
/** A model's name has a tag there; ours have none of their own. */
const tag = ":latest";
/** A model that stays loaded. */
const never = "9999-12-31T23:59:59Z";

type Services = Pick<ServerServices, "model" | "agents" | "engine" | "chat">;

/** `name:latest` and `name` are one model. */
export function withoutTag(name: string): string {
  return name.endsWith(tag) ? name.slice(0, -tag.length) : name;
}

export function modelRoutes(services: Services): RouteOptions[] {
  const { model, engine } = services;
  const get = (url: string, handler: () => object): RouteOptions => ({
    method: "GET",
    url,
    config: { wire: "ollama" },
    handler: async () => handler(),
  });
  const loaded = {
    expires_at: never,
    size_vram: 0,
    context_length: model.contextSize,
  };
  return [
    get("/api/version", () => ({ version })),
    get("/api/tags", () => ({
      models: allNames(services).map((name) => listed(name, services)),
    })),
    get("/api/ps", () => ({ models: [{ ...listed(model.id, services), ...loaded }] })),
    {
      method: "POST",
      url: "/api/show",
      config: { wire: "ollama" },
      handler: async ({ body }) => {
        const reading = { warn: () => {} };
        const given = readBody(showFields, body, reading, 'Send {"model": "…"}');
        const wanted = given.model ?? given.name;
        if (wanted === undefined)
          throw fieldError("missing_field", "model", "is missing", "Send a model's name");
        const name = withoutTag(wanted);
        if (name !== "default" && !allNames(services).includes(name))
          throw new FermataError("not_found", `model '${wanted}' not found`, { param: "model" });
        return {
          modelfile: "",
          parameters: "",
          template: services.chat.templateSource ?? "",
          details: detailsOf(engine.model),
          model_info: {
            "general.architecture": engine.model.architecture,
            "general.parameter_count": engine.model.parameterCount,
            [`${engine.model.architecture}.context_length`]: model.contextSize,
          },
          capabilities: capabilitiesOf(services),
          modified_at: modifiedAt(services),
        };
      },
    },
  ];
}

function allNames({ model, agents }: Services): string[] {
  return [...namesOf(model), ...(agents?.names() ?? [])];
}

function listed(name: string, services: Services): object {
  const { engine } = services;
  const tagged = name + tag;
  return {
    name: tagged,
    model: tagged,
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

function modifiedAt({ model }: Services): string {
  return new Date(model.created * 1000).toISOString();
}

function detailsOf({ architecture, description, parameterCount }: Services["engine"]["model"]) {
  return {
    parent_model: "",
    format: "gguf",
    family: architecture,
    families: [architecture],
    parameter_size: shortCount(parameterCount),
    quantization_level: quantizationOf(description),
  };
}

/** 1_540_000_000 -> 1.5B, as Ollama writes it. */
function shortCount(count: number): string {
  if (count >= 1e9) return `${(count / 1e9).toFixed(1)}B`;
  return count >= 1e6 ? `${(count / 1e6).toFixed(2)}M` : `${(count / 1e3).toFixed(2)}K`;
}

/** llama.cpp's description ends with it: `qwen2 1.5B Q4_K - Medium` -> `Q4_K_M`. */
function quantizationOf(description: string): string {
  const [, , ...words] = description.split(" ");
  return words.join(" ").replace(/ - (Small|Medium|Large)$/, (_, size: string) => `_${size[0]}`);
}

function capabilitiesOf({ model, chat }: Services): string[] {
  const { toolSection = null } = model;
  return [
    "completion",
    ...(toolSection === null ? [] : ["tools"]),
    ...(chat.mayThink ? ["thinking"] : []),
  ];
}
