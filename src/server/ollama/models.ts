/** GET /api/version, /api/tags, /api/ps, POST /api/show and /api/pull, as Ollama has them. */

import type { Route } from "../route.ts";
import { answer, choice, list, object, string, whole } from "../body/shapes.ts";
import { FermataError } from "../../errors.ts";
import {
  capabilitiesOf,
  detailsOf,
  type KnownModel,
  knownModel,
  knownModels,
  listedModel,
  type ListServices,
  modifiedAt,
  listedModelShape,
  modelDetails,
} from "../answer/model-list.ts";
import { agentCalled, calledName, latestTag, nameCalled } from "../answer/target.ts";
import { readBody, fieldError } from "../body/field.ts";
import type { ServerServices } from "../services.ts";
import { modelsAreFiles } from "../http/route-paths.ts";
import { pullFields, showFields } from "./fields.ts";

/** The one whose API this follows: clients ask whether it is new enough for tools, thinking, Responses (0.13.4) and Messages. */
const version = "0.14.0";
/** A model that stays loaded. */
const never = "9999-12-31T23:59:59Z";

type Services = ListServices & Pick<ServerServices, "agents" | "embedder">;

export function ollamaModelRoutes(services: Services): Route[] {
  const agentNames = (): readonly string[] => services.agents?.names() ?? [];
  const embedders = embeddingModels(services);
  const find = (wanted: string): object | null => {
    const embedding = embedders.find(({ id }) => calledName(wanted, (one) => one === id) === id);
    if (embedding !== undefined) return embedding.shown;
    const agent = agentCalled(wanted, services)?.name;
    const known = knownModel(agent === undefined ? wanted : "default", services);
    if (known === null) return null;
    const [own] = known.names;
    return shown(known, agent ?? nameCalled(wanted, known.names) ?? own!);
  };
  return [
    {
      at: "GET /api/version",
      summary: "The version of Ollama whose API this follows.",
      answer: answer({ version: string }),
      config: { wire: "ollama" },
      handler: async () => ({ version }),
    },
    {
      at: "GET /api/tags",
      summary: "The model and the agents, in Ollama's format.",
      answer: answer({
        models: list(answer({ ...listedModelShape, capabilities: list(string) })),
      }),
      config: { wire: "ollama" },
      handler: async () => {
        const listed = (name: string, model: KnownModel): object => ({
          ...listedModel(name + latestTag, model),
          capabilities: capabilitiesOf(model),
        });
        const own = knownModel("default", services)!;
        const models = knownModels(services).flatMap((model) =>
          model.names.map((name) => listed(name, model)),
        );
        const agents = agentNames().map((name) => listed(name, own));
        return { models: [...models, ...embedders.map(({ entry }) => entry), ...agents] };
      },
    },
    {
      at: "GET /api/ps",
      summary: "The loaded model, in Ollama's format.",
      answer: answer({
        models: list(
          answer({
            ...listedModelShape,
            expires_at: string,
            size_vram: whole,
            context_length: whole,
          }),
        ),
      }),
      config: { wire: "ollama" },
      handler: async () => ({
        models: [
          ...knownModels(services).flatMap((model) => inMemory(model)),
          ...embedders.map(({ running }) => running),
        ],
      }),
    },
    {
      at: "POST /api/show",
      summary: "What a model is and can do, in Ollama's format.",
      request: showFields,
      example: { model: "default" },
      answer: answer({
        modelfile: string,
        parameters: string,
        template: string,
        details: modelDetails,
        model_info: object,
        capabilities: list(string),
        modified_at: string,
      }),
      config: { wire: "ollama" },
      handler: async ({ body }) => {
        const wanted = nameIn(readBody(showFields, body, quiet, showModel));
        const found = find(wanted);
        if (found !== null) return found;
        throw new FermataError("not_found", `model '${wanted}' not found`, { param: "model" });
      },
    },
    {
      at: "POST /api/pull",
      summary: "Says that a model is here. Nothing is fetched.",
      request: pullFields,
      example: { model: "default", stream: false },
      lines: true,
      answer: answer({ status: choice("success") }),
      config: { wire: "ollama" },
      handler: async ({ body }, reply) => {
        const given = readBody(pullFields, body, quiet, showModel);
        const wanted = nameIn(given);
        if (find(wanted) === null) {
          const message = `model '${wanted}' not found. ${modelsAreFiles}`;
          throw new FermataError("not_found", message, { param: "model" });
        }
        const line = { status: "success" };
        if (!given.stream) return line;
        return reply.type("application/x-ndjson").send(`${JSON.stringify(line)}\n`);
      },
    },
  ];
}

const quiet = { warn: () => {} };
const showModel = 'Send {"model": "…"}';

/** @throws FermataError missing_field */
function nameIn({ model, name }: { model: string; name: string }): string {
  const wanted = model || name;
  if (wanted !== "") return wanted;
  throw fieldError("missing_field", "model", "is missing", "Send a model's name");
}

/** The model for vectors, in the words of the list, of what is loaded and of what it is; none or one. */
function embeddingModels({ embedder }: Services) {
  if (embedder?.file === undefined) return [];
  const { id, file, dimensions, maxTokens } = embedder;
  const { bytes, created } = file;
  const at = { state: "loaded", progress: 1, uses: 0, leavesAt: null, isPinned: true } as const;
  const header = file.describe();
  const known: KnownModel = {
    names: [id],
    created,
    bytes,
    ...at,
    loaded: null,
    header: () => header,
  };
  const capabilities = ["embedding"];
  const entry = { ...listedModel(id + latestTag, known), capabilities };
  const running = loadedEntry(known, maxTokens);
  const whole = shown(known, id);
  const architecture = header?.architecture ?? "";
  const model_info = {
    ...whole.model_info,
    [`${architecture}.context_length`]: maxTokens,
    [`${architecture}.embedding_length`]: dimensions,
  };
  return [{ id, entry, running, shown: { ...whole, model_info, capabilities } }];
}

function inMemory(known: KnownModel): object[] {
  return known.loaded === null ? [] : [loadedEntry(known, known.loaded.model.contextSize)];
}

function loadedEntry(known: KnownModel, contextLength: number): object {
  const { names, leavesAt } = known;
  return {
    ...listedModel(names[0] + latestTag, known),
    expires_at: leavesAt === null ? never : new Date(leavesAt).toISOString(),
    size_vram: 0,
    context_length: contextLength,
  };
}

/** @param name as the lists have it, without the tag: some clients show `general.basename` */
function shown(known: KnownModel, name: string) {
  const { loaded } = known;
  const header = loaded === null ? known.header() : null;
  const architecture = loaded?.engine.model.architecture ?? header?.architecture ?? "";
  const context = loaded?.model.contextSize;
  return {
    modelfile: `FROM ${name}${latestTag}\n${context === undefined ? "" : `PARAMETER num_ctx ${context}\n`}`,
    // As wide as Ollama writes it.
    parameters: context === undefined ? "" : "num_ctx".padEnd(31) + context,
    template: loaded?.chat.templateSource ?? header?.chatTemplate ?? "",
    details: detailsOf(known),
    model_info: {
      "general.architecture": architecture,
      "general.basename": name,
      [`${architecture}.context_length`]: context ?? header?.trainedContext ?? 0,
      ...(loaded === null
        ? {}
        : {
            "general.parameter_count": loaded.engine.model.parameterCount,
            [`${architecture}.embedding_length`]: loaded.engine.model.embeddingSize,
          }),
    },
    capabilities: capabilitiesOf(known),
    modified_at: modifiedAt(known),
  };
}
