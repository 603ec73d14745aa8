/** GET /v1/models and /v1/models/{model}: for clients of OpenAI, Anthropic, llama-server and Ollama, all in one body. */

import type { Route } from "../route.ts";
import type { LoadedModel, ServerServices } from "../services.ts";
import {
  capabilitiesOf,
  type KnownModel,
  knownModel,
  knownModels,
  listedModel,
  type ListServices,
  listedModelShape,
} from "../answer/model-list.ts";
import { agentCalled } from "../answer/target.ts";
import {
  answer,
  choice,
  real,
  string,
  type ValueOf,
  whole,
  boolean,
  list,
  nullable,
} from "../body/shapes.ts";
import { pageOf } from "../body/stored.ts";
import { FermataError } from "../../errors.ts";

export const modelState = choice("unloaded", "loading", "loaded", "unloading");

/** llama-server's. */
const modelMeta = answer({
  n_vocab: whole,
  n_ctx: whole,
  n_ctx_train: whole,
  n_params: whole,
  // In bytes.
  size: whole,
  // llama.cpp's number.
  vocab_type: whole,
  n_embd: whole,
  ftype: string,
});

export const model = answer(
  {
    id: string,
    object: choice("model"),
    created: whole,
    owned_by: string,
    // Anthropic's, as the next three.
    type: choice("model"),
    display_name: string,
    lifecycle: choice("active"),
    // RFC 3339.
    created_at: string,
  },
  {
    // vLLM's: the model behind an alias. Not of agents.
    root: string,
    // Not OpenAI's: tokens that a prompt and its answer may have together. Of a model in memory.
    context_length: whole,
    // The same under vLLM's name, and under Anthropic's two.
    max_model_len: whole,
    max_input_tokens: whole,
    max_tokens: whole,
    // llama-server's, where it serves several models.
    status: answer({ value: modelState }, { progress: real }),
    // Not of agents.
    meta: modelMeta,
  },
);

type WireModel = ValueOf<typeof model>;

type Services = ListServices & Pick<ServerServices, "agents">;

export function modelsRoute(services: Services): Route {
  return {
    at: "GET /v1/models",
    summary: "The models that requests may name; with `--models-dir`, all of the folder.",
    answer: answer({
      object: choice("list"),
      data: list(model),
      first_id: nullable(string),
      last_id: nullable(string),
      has_more: boolean,
      models: list(
        answer({
          ...listedModelShape,
          type: choice("model"),
          description: string,
          parameters: string,
          tags: list(string),
          capabilities: list(string),
        }),
      ),
    }),
    config: { isAnthropicToo: true },
    handler: async () => {
      const known = knownModels(services);
      const agents = services.agents?.names() ?? [];
      const data = [
        ...known.flatMap((model) => model.names.map((id) => wireKnown(id, model, services))),
        ...agents.flatMap((name) => wireAgent(name, services) ?? []),
      ];
      return {
        // Anthropic's; there is one page.
        ...pageOf(data, { after: null, limit: Infinity, order: "asc" }),
        // llama-server's, for Ollama's clients that ask here.
        models: known.flatMap((model) =>
          model.names.map((name) => ({ ...listedModel(name, model), ...describe(model) })),
        ),
      };
    },
  };
}

function describe(model: KnownModel): object {
  return {
    type: "model",
    description: model.loaded?.engine.model.description ?? "",
    parameters: "",
    tags: [],
    capabilities: capabilitiesOf(model),
  };
}

/** Null: there is no agent of this name. An agent is a model to its callers. */
function wireAgent(
  name: string,
  { model, agents }: Pick<ServerServices, "model" | "agents">,
): WireModel | null {
  const agent = agentCalled(name, { agents });
  if (agent === undefined) return null;
  return { ...wireModel(agent.name, model.created), ...limitsOf(agent.model) };
}

function limitsOf({ contextSize }: Pick<LoadedModel["model"], "contextSize">) {
  return {
    context_length: contextSize,
    max_model_len: contextSize,
    max_input_tokens: contextSize,
    max_tokens: contextSize,
  };
}

function wireServedModel(
  id: string,
  { model, engine }: Pick<LoadedModel, "model" | "engine">,
): WireModel {
  return {
    ...wireModel(id, model.created),
    ...limitsOf(model),
    meta: metaOf({ model, engine }),
  };
}

function wireKnown(id: string, known: KnownModel, { models }: Services): WireModel {
  const { loaded, created, state, progress, names } = known;
  const own = loaded === null ? wireModel(id, created) : wireServedModel(id, loaded);
  const wire = { ...own, root: names[0]! };
  if (models === undefined) return wire;
  return { ...wire, status: { value: state, ...(state === "loading" ? { progress } : {}) } };
}

function metaOf({
  model,
  engine,
}: Pick<LoadedModel, "model" | "engine">): ValueOf<typeof modelMeta> {
  const { trainedContext, parameterCount, sizeBytes, ...known } = engine.model;
  return {
    n_vocab: model.vocabularySize,
    n_ctx: model.contextSize,
    n_ctx_train: trainedContext,
    n_params: parameterCount,
    size: sizeBytes,
    vocab_type: known.vocabularyType,
    n_embd: known.embeddingSize,
    ftype: known.fileType,
  };
}

function wireModel(id: string, created: number): WireModel {
  return {
    id,
    object: "model",
    created,
    owned_by: "fermata",
    type: "model",
    display_name: id,
    lifecycle: "active",
    created_at: new Date(created * 1000).toISOString(),
  };
}

export function modelRoute(services: Services): Route {
  return {
    at: "GET /v1/models/:model",
    summary: "A model, by its name or `default`.",
    answer: model,
    config: { isAnthropicToo: true },
    handler: async (request) => {
      const { model: wanted } = request.params as { model: string };
      const agent = wireAgent(wanted, services);
      if (agent !== null) return agent;
      const known = knownModel(wanted, services);
      if (known !== null)
        return wireKnown(wanted === "default" ? known.names[0]! : wanted, known, services);
      const names = knownModels(services).map((model) => `"${model.names[0]}"`);
      const message =
        names.length === 1
          ? `The model is not loaded. ${names[0]} is.`
          : `There is no such model. There are ${names.join(", ")}.`;
      throw new FermataError("not_found", message, { param: "model" });
    },
  };
}
