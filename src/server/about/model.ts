/** GET /v1/models/{id} */

import type { RouteOptions } from "fastify";
import { FermataError } from "../../errors.ts";
import type { ServerServices } from "../services.ts";
import { namesOf } from "../answer/target.ts";
import { wireAgent, wireServedModel } from "./models.ts";

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
