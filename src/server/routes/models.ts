/** GET /v1/models */

import type { RouteOptions } from "fastify";
import type { ServedModel } from "../services.ts";

export interface WireModel {
  id: string;
  object: "model";
  created: number;
  owned_by: string;
  /** Not OpenAI's: tokens that a prompt and its answer may have together. */
  context_length: number;
}

export function modelsRoute(model: ServedModel): RouteOptions {
  return {
    method: "GET",
    url: "/v1/models",
    handler: async () => ({ object: "list", data: [wireModel(model)] }),
  };
}

export function wireModel({ id, created, contextSize }: ServedModel): WireModel {
  return { id, object: "model", created, owned_by: "fermata", context_length: contextSize };
}
