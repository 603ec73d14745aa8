/** GET /api/models: which models are in memory. POST /v1/models/load and /v1/models/unload, as llama-server has them. */

import type { RouteOptions } from "fastify";
import { FermataError } from "../../errors.ts";
import {
  detailsOf,
  type KnownModel,
  knownModel,
  knownModels,
  type ListServices,
} from "../answer/model-list.ts";
import { withModel } from "../answer/model-use.ts";
import { type FieldTable, readBody, required } from "../body/field.ts";
import { text } from "../body/values.ts";
import type { RouteContext } from "../context.ts";

export const loadFields = {
  model: required(text({ min: 1, remedy: "Send a model's name" }), "the model's name"),
} satisfies FieldTable;

export function loadRoutes(context: RouteContext): RouteOptions[] {
  const { services, active, warnings } = context;
  const named = (body: unknown): KnownModel => {
    const { model } = readBody(loadFields, body, { warn: warnings.warn }, 'Send {"model": "…"}');
    const known = knownModel(model, services);
    if (known !== null) return known;
    const names = knownModels(services).map(({ names }) => names[0]);
    const message = `There is no model "${model.slice(0, 100)}". There are ${names.join(", ")}.`;
    throw new FermataError("not_found", message, { param: "model" });
  };
  return [
    {
      method: "GET",
      url: "/api/models",
      handler: async () => ({
        models: knownModels(services).map((known) => wireState(known, services)),
      }),
    },
    {
      method: "POST",
      url: "/v1/models/load",
      handler: async ({ body }, reply) => {
        const signal = active.signalFor(reply);
        return await withModel(named(body).names[0]!, context, { signal }, async () => ({
          success: true,
        }));
      },
    },
    {
      method: "POST",
      url: "/v1/models/unload",
      config: { scope: "admin" },
      /** Once nobody uses it any more. */
      handler: async ({ body }) => {
        const [name] = named(body).names;
        if (services.models === undefined)
          throw new FermataError(
            "unsupported_value",
            `${name} is the only model that is served, so it stays in memory. Serve a folder with --models-dir.`,
            { param: "model" },
          );
        await services.models.unload(name!);
        return { success: true };
      },
    },
  ];
}

function wireState(known: KnownModel, { model }: ListServices): object {
  const { names, bytes, state, progress, uses, leavesAt, isPinned, loaded } = known;
  const { quantization_level: quantization, family } = detailsOf(known);
  return {
    id: names[0],
    is_default: names[0] === model.id,
    state,
    progress: state === "loaded" ? 1 : progress,
    size: bytes,
    architecture: family,
    quantization,
    context_length: loaded?.model.contextSize ?? null,
    uses,
    leaves_at: leavesAt === null ? null : new Date(leavesAt).toISOString(),
    is_pinned: isPinned,
  };
}
