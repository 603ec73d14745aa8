/** GET /v1/models/{id} */

import type { RouteOptions } from "fastify";
import { FermataError } from "../../errors.ts";
import type { ServedModel } from "../services.ts";
import { wireModel } from "./models.ts";

export function modelRoute(model: ServedModel): RouteOptions {
  return {
    method: "GET",
    url: "/v1/models/:model",
    handler: async (request) => {
      const { model: wanted } = request.params as { model: string };
      if (wanted === model.id || wanted === "default") return wireModel(model);
      throw new FermataError("not_found", `The model is not loaded. "${model.id}" is.`, {
        param: "model",
      });
    },
  };
}
