/** GET /api/version, /api/tags, /api/ps and POST /api/show, as Ollama has them. */

import type { RouteOptions } from "fastify";
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
} from "../answer/model-list.ts";
import { agentCalled, latestTag } from "../answer/target.ts";
import { readBody, fieldError } from "../body/field.ts";
import type { ServerServices } from "../services.ts";
import { showFields } from "./fields.ts";

/** The one whose API this follows: clients ask whether it is new enough for tools and thinking. */
const version = "0.12.6";
/** A model that stays loaded. */
const never = "9999-12-31T23:59:59Z";

type Services = ListServices & Pick<ServerServices, "agents">;

export function ollamaModelRoutes(services: Services): RouteOptions[] {
  const get = (url: string, handler: () => object): RouteOptions => ({
    method: "GET",
    url,
    config: { wire: "ollama" },
    handler: async () => handler(),
  });
  const agentNames = (): readonly string[] => services.agents?.names() ?? [];
  return [
    get("/api/version", () => ({ version })),
    get("/api/tags", () => {
      const known = knownModels(services);
      const listed = known.flatMap((model) =>
        model.names.map((name) => listedModel(name + latestTag, model)),
      );
      const own = knownModel("default", services)!;
      return {
        models: [...listed, ...agentNames().map((name) => listedModel(name + latestTag, own))],
      };
    }),
    get("/api/ps", () => ({
      models: knownModels(services).flatMap((model) => inMemory(model)),
    })),
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
        const isAgent = agentCalled(wanted, services) !== undefined;
        const known = knownModel(isAgent ? "default" : wanted, services);
        if (known === null)
          throw new FermataError("not_found", `model '${wanted}' not found`, { param: "model" });
        return shown(known);
      },
    },
  ];
}

function inMemory(known: KnownModel): object[] {
  const { loaded, names, leavesAt } = known;
  if (loaded === null) return [];
  return [
    {
      ...listedModel(names[0] + latestTag, known),
      expires_at: leavesAt === null ? never : new Date(leavesAt).toISOString(),
      size_vram: 0,
      context_length: loaded.model.contextSize,
    },
  ];
}

function shown(known: KnownModel): object {
  const { loaded } = known;
  const header = loaded === null ? known.header() : null;
  const architecture = loaded?.engine.model.architecture ?? header?.architecture ?? "";
  return {
    modelfile: "",
    parameters: "",
    template: loaded?.chat.templateSource ?? header?.chatTemplate ?? "",
    details: detailsOf(known),
    model_info: {
      "general.architecture": architecture,
      ...(loaded === null ? {} : { "general.parameter_count": loaded.engine.model.parameterCount }),
      [`${architecture}.context_length`]: loaded?.model.contextSize ?? header?.trainedContext ?? 0,
    },
    capabilities: capabilitiesOf(known),
    modified_at: modifiedAt(known),
  };
}
