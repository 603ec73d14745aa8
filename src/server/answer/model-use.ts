/** Which model a request is answered with, where a folder of models is served. */

import type { FastifyReply } from "fastify";
import type { RouteContext } from "../context.ts";
import type { TakeOptions } from "../../models/types.ts";
import type { LoadedModel, ServerServices } from "../services.ts";
import { calledName, namesOf } from "./target.ts";

/** The models in memory, the one that was used last first. */
export function loadedModels(
  services: Pick<ServerServices, "models" | "engine" | "model">,
): Pick<LoadedModel, "engine" | "model">[] {
  return services.models?.loaded() ?? [services];
}

/** Of the models in memory, and those that agents have to themselves. */
export function engineStates({
  agentEngines = [],
  ...services
}: Pick<ServerServices, "models" | "engine" | "model" | "agentEngines">): ReturnType<
  ServerServices["engine"]["stats"]
>[] {
  return [...loadedModels(services), ...agentEngines].map(({ engine }) => engine.stats());
}

/** Of routes, and of what a run is started with. */
type ModelContext = Pick<RouteContext, "services" | "config" | "lease" | "loadMilliseconds">;

/**
 * Calls `work` with the model that is named, once it is in memory. It stays there until `work` has settled, and until
 * whatever `lease.until` of the context was told. No name stands for the default, an agent's for the model of agents.
 * @throws FermataError not_found | model_busy | queue_full, and what loading throws
 */
export async function withModel<Context extends ModelContext, Result>(
  wanted: string | null,
  context: Context,
  options: TakeOptions,
  work: (context: Context) => Promise<Result>,
): Promise<Result> {
  const { models } = context.services;
  if (models === undefined) return await work(context);
  const startedAt = performance.now();
  const lease = await models.take(nameOfModel(wanted, context.services), options);
  const loadMilliseconds = performance.now() - startedAt;
  const working = work({ ...contextOf(lease.model, context), lease, loadMilliseconds });
  lease.until(working);
  return await working;
}

/** The name of the model in memory that answers to a request's name. */
export function nameOfModel(
  wanted: string | null,
  { models, model, agents }: Pick<ServerServices, "models" | "model" | "agents">,
): string {
  const isDefault = (name: string): boolean =>
    name === "default" || namesOf(model).includes(name) || agents?.find(name) !== undefined;
  const name = calledName(
    wanted ?? "default",
    (one) => isDefault(one) || models?.has(one) === true,
  );
  return isDefault(name) ? model.id : name;
}

/** With the model that was used last, for who only looks: it loads none, and keeps none in memory. Null: none is there. */
export function lastUsed<Context extends ModelContext>(context: Context): Context | null {
  const [model] = context.services.models?.loaded() ?? [];
  return model === undefined ? null : contextOf(model, context);
}

function contextOf<Context extends ModelContext>(
  { sampling, ...loaded }: LoadedModel,
  context: Context,
): Context {
  const { services, config } = context;
  return { ...context, services: { ...services, ...loaded }, config: { ...config, sampling } };
}

/** Resolves when the connection's answer is out, or the client has gone. */
export function closed({ raw }: FastifyReply): Promise<void> {
  if (raw.destroyed) return Promise.resolve();
  return new Promise((resolve) => raw.once("close", resolve));
}
