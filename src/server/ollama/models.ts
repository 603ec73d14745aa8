/** GET /api/version, /api/tags, /api/ps and POST /api/show, as Ollama has them. */

import type { RouteOptions } from "fastify";
import { FermataError } from "../../errors.ts";
import { capabilitiesOf, detailsOf, listedModel, modifiedAt } from "../answer/model-list.ts";
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
      models: allNames(services).map((name) => listedModel(name + tag, services)),
    })),
    get("/api/ps", () => ({ models: [{ ...listedModel(model.id + tag, services), ...loaded }] })),
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
