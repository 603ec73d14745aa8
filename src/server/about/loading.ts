/** GET /api/models: which models are in memory. POST /v1/models/load and /v1/models/unload, as llama-server has them. */

import { modelState } from "./models.ts";
import type { Route } from "../route.ts";
import { answer, boolean, list, nullable, real, string, whole } from "../body/shapes.ts";
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

const done = answer({ success: boolean });

export function loadRoutes(context: RouteContext): Route[] {
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
      at: "GET /api/models",
      summary: "The models and which of them are in memory.",
      answer: answer({
        models: list(
          answer({
            id: string,
            is_default: boolean,
            state: modelState,
            progress: real,
            size: whole,
            architecture: string,
            quantization: string,
            context_length: nullable(whole),
            uses: whole,
            leaves_at: nullable(string),
            is_pinned: boolean,
          }),
        ),
      }),
      handler: async () => ({
        models: knownModels(services).map((known) => wireState(known, services)),
      }),
    },
    {
      at: "POST /v1/models/load",
      summary: "Brings a model into memory before it is used.",
      request: loadFields,
      answer: done,
      handler: async ({ body }, reply) => {
        const signal = active.signalFor(reply);
        return await withModel(named(body).names[0]!, context, { signal }, async () => ({
          success: true,
        }));
      },
    },
    {
      at: "POST /v1/models/unload",
      summary: "Takes a model out of memory, once nobody uses it. With `--models-dir`.",
      request: loadFields,
      answer: done,
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
