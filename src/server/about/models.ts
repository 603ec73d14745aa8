/** GET /v1/models */

import type { RouteOptions } from "fastify";
import type { ServedModel, ServerServices } from "../services.ts";
import { namesOf } from "../answer/target.ts";

export interface WireModel {
  id: string;
  object: "model";
  created: number;
  owned_by: string;
  /** Not OpenAI's: tokens that a prompt and its answer may have together. */
  context_length: number;
}

export function modelsRoute(services: Pick<ServerServices, "model" | "agents">): RouteOptions {
  const agents = (): string[] => services.agents?.names() ?? [];
  return {
    method: "GET",
    url: "/v1/models",
    handler: async () => ({
      object: "list",
      data: [
        ...namesOf(services.model).map((id) => wireModel({ ...services.model, id })),
        ...agents().flatMap((name) => wireAgent(name, services) ?? []),
      ],
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

export function wireModel({ id, created, contextSize }: ServedModel): WireModel {
  return { id, object: "model", created, owned_by: "fermata", context_length: contextSize };
}
