/** GET /v1/models and /v1/models/{model} */

import type { RouteOptions } from "fastify";
import type { ServedModel, ServerServices } from "../services.ts";
import { capabilitiesOf, listedModel } from "../answer/model-list.ts";
import { namesOf } from "../answer/target.ts";
import { FermataError } from "../../errors.ts";

export interface WireModel {
  id: string;
  object: "model";
  created: number;
  owned_by: string;
  /** Not OpenAI's: tokens that a prompt and its answer may have together. */
  context_length: number;
  /** llama-server's; not of agents. */
  meta?: ModelMeta;
}

interface ModelMeta {
  n_vocab: number;
  n_ctx: number;
  n_ctx_train: number;
  n_params: number;
  /** In bytes. */
  size: number;
  /** llama.cpp's number. */
  vocab_type: number;
  n_embd: number;
  ftype: string;
}

type Services = Pick<ServerServices, "model" | "agents" | "engine">;

export function modelsRoute(services: Services & Pick<ServerServices, "chat">): RouteOptions {
  const agents = (): string[] => services.agents?.names() ?? [];
  const own = namesOf(services.model);
  const described = {
    type: "model",
    description: services.engine.model.description,
    parameters: "",
    tags: [],
    capabilities: capabilitiesOf(services),
  };
  return {
    method: "GET",
    url: "/v1/models",
    handler: async () => ({
      object: "list",
      data: [
        ...own.map((id) => wireServedModel(id, services)),
        ...agents().flatMap((name) => wireAgent(name, services) ?? []),
      ],
      // llama-server's, for Ollama's clients that ask here.
      models: own.map((name) => ({ ...listedModel(name, services), ...described })),
    }),
  };
}

/** Null: there is no agent of this name. An agent is a model to its callers. */
export function wireAgent(
  name: string,
  { model, agents }: Pick<ServerServices, "model" | "agents">,
): WireModel | null {
  const agent = agents?.find(name);
  if (agent === undefined) return null;
  return wireModel({ ...model, id: agent.name, contextSize: agent.model.contextSize });
}

export function wireServedModel(id: string, { model, engine }: Services): WireModel {
  const { trainedContext, parameterCount, sizeBytes, ...known } = engine.model;
  const meta = {
    n_vocab: model.vocabularySize,
    n_ctx: model.contextSize,
    n_ctx_train: trainedContext,
    n_params: parameterCount,
    size: sizeBytes,
    vocab_type: known.vocabularyType,
    n_embd: known.embeddingSize,
    ftype: known.fileType,
  };
  return { ...wireModel({ ...model, id }), meta };
}

function wireModel({ id, created, contextSize }: ServedModel): WireModel {
  return { id, object: "model", created, owned_by: "fermata", context_length: contextSize };
}

export function modelRoute(
  services: Pick<ServerServices, "model" | "agents" | "engine">,
): RouteOptions {
  const { model } = services;
  return {
    method: "GET",
    url: "/v1/models/:model",
    handler: async (request) => {
      const { model: wanted } = request.params as { model: string };
      const agent = wireAgent(wanted, services);
      if (agent !== null) return agent;
      if (wanted === "default") return wireServedModel(model.id, services);
      if (namesOf(model).includes(wanted)) return wireServedModel(wanted, services);
      throw new FermataError("not_found", `The model is not loaded. "${model.id}" is.`, {
        param: "model",
      });
    },
  };
}
