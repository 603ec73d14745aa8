/** Which model a request is answered with: one of a folder, or the ones beside it for vectors and for scores. */

import type { FastifyReply } from "fastify";
import type { RouteContext } from "../context.ts";
import type { TakeOptions } from "../../models/types.ts";
import type { LoadedModel, ServerServices, ServedEmbedder, ServedReranker } from "../services.ts";
import { calledName, namesOf } from "./target.ts";
import { FermataError } from "../../errors.ts";
import type { JsonObject } from "../../json.ts";
import { isNumber } from "../body/prompt-inputs.ts";

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

/** @throws FermataError unsupported_value: there is none */
export function embedderOf({ services: { embedder, model } }: RouteContext): ServedEmbedder {
  return embedder ?? refuse(`gives no embeddings: ${model.id} generates text`, "--embedding-model");
}

/** @throws FermataError unsupported_value: there is none */
export function rerankerOf({ services: { reranker, model } }: RouteContext): ServedReranker {
  return reranker ?? refuse(`ranks nothing: ${model.id} generates text`, "--rerank-model");
}

function refuse(problem: string, flag: string): never {
  const message = `"model" ${problem}. Start the server with ${flag} FILE.`;
  throw new FermataError("unsupported_value", message, { param: "model" });
}

/** Each answers to every name. @param what it does: `names a model that does not …` */
export function warnOfName(
  name: string | undefined,
  { id }: { id: string },
  what: "embed" | "rank",
  { warnings }: RouteContext,
): void {
  if (name !== undefined && name !== id)
    warnings.warn(`model=${name}`, `names a model that does not ${what} here; ${id} answers`);
}

/** Models that were trained for it say most in their first numbers. */
export function shortened(vector: Float32Array, dimensions: number): Float32Array {
  if (dimensions >= vector.length) return vector;
  const head = vector.slice(0, dimensions);
  const length = Math.hypot(...head);
  return length === 0 ? head : head.map((value) => value / length);
}

/** Where an input stands in a body that was read: `input`, or `input[i]` of a list. */
export function inputField(name: string, body: unknown): (index: number) => string {
  const sent = (body as JsonObject)[name];
  const isList = Array.isArray(sent) && !sent.every(isNumber);
  return isList ? (index) => `${name}[${index}]` : () => name;
}
