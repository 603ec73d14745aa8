/** Addresses as clients spell them: their paths, their parameters, and what to say of one that leads nowhere. */

import type { FastifyInstance, FastifyRequest } from "fastify";
import { FermataError } from "../../errors.ts";
import { fieldError } from "../body/field.ts";

const version = "v1";
const maxPathLength = 200;
/** Ollama's endpoints that make and remove models are absent here. */
export const changesModels = /^\/api\/(push|create|copy|delete|blobs)\b/u;
export const modelsAreFiles =
  "Models are files here: fetch one with fermata pull, and name it with --model, or its folder with --models-dir.";

/** Some clients are given an address with `/v1`, some without, some with a slash at its end. */
export class RoutePaths {
  #paths: string[] = [];
  #versioned = new Set<string>();
  #plain = new Set<string>();

  /** @param urls all of the API; pages for people may be left out */
  set(urls: readonly string[]): void {
    this.#paths = [...new Set(urls)];
    const roots = this.#paths.map(segmentsOf);
    this.#versioned = new Set(roots.flatMap(([first, root]) => (first === version ? [root!] : [])));
    this.#plain = new Set(roots.flatMap(([first]) => (first === version ? [] : [first!])));
  }

  /** A request's address as the routes have it: `/chat/completions/?x=1` -> `/v1/chat/completions?x=1`. */
  readonly canonical = ({ url: address = "/" }: { url?: string | undefined }): string => {
    // Clients with a proxy send it whole.
    const url = address.replace(/^https?:\/\/[^/?]*/iu, "");
    const queryStart = url.indexOf("?");
    const query = queryStart < 0 ? "" : url.slice(queryStart);
    const [first, ...rest] = segmentsOf(queryStart < 0 ? url : url.slice(0, queryStart));
    if (first === undefined) return `/${query}`;
    const segments = [first, ...rest];
    if (this.#versioned.has(first) && !this.#plain.has(first)) segments.unshift(version);
    const isPlain = first === version && rest[0] !== undefined && this.#plain.has(rest[0]);
    if (isPlain && !this.#versioned.has(rest[0]!)) segments.shift();
    return `/${segments.join("/")}${query}`;
  };

  /** All paths there are, those that are spelled most like this one first. */
  nearest(path: string): string[] {
    const wanted = pairsOf(path);
    const likeness = (other: string): number => {
      const pairs = pairsOf(other);
      const shared = [...pairs].filter((pair) => wanted.has(pair)).length;
      return (2 * shared) / (wanted.size + pairs.size || 1);
    };
    return this.#paths
      .map((url) => ({ url, likeness: likeness(url) }))
      .toSorted((a, b) => b.likeness - a.likeness)
      .map(({ url }) => documentedPath(url));
  }
}

/** Before a body is read: what it holds does not matter. To be called after the keys are asked for. */
export function installNotFound(app: FastifyInstance, paths: RoutePaths): void {
  app.setNotFoundHandler(async () => {});
  app.addHook("onRequest", async (request) => {
    if (!request.is404) return;
    const path = request.originalUrl.split("?", 1)[0]!.slice(0, maxPathLength);
    const others = changesModels.test(path)
      ? modelsAreFiles
      : `There are ${paths.nearest(path).join(", ")}.`;
    throw new FermataError("not_found", `There is no ${request.method} ${path}. ${others}`);
  });
}

/** `/v1/models/:model` -> `/v1/models/{model}` */
export function documentedPath(url: string): string {
  return url.replaceAll(/:(\w+)/g, "{$1}");
}

/** The `:id` of a route's path. */
export function idInPath({ params }: FastifyRequest): string {
  return (params as { id: string }).id;
}

function segmentsOf(path: string): string[] {
  return path.split("/").filter((segment) => segment !== "");
}

/** Neighbouring characters. */
function pairsOf(path: string): Set<string> {
  return new Set(Array.from({ length: path.length - 1 }, (_, at) => path.slice(at, at + 2)));
}

const maxNameLength = 64;

/** A parameter of an address has one value; given twice, it would be a list where routes read a text. */
export function installSingleQuery(app: FastifyInstance): void {
  app.addHook("onRequest", async ({ query }) => {
    for (const [name, value] of Object.entries(query as Record<string, unknown>)) {
      if (!Array.isArray(value) || isList(name)) continue;
      const problem = "is given more than once";
      throw fieldError("invalid_value", name.slice(0, maxNameLength), problem, "Send it once");
    }
  });
}

/** As OpenAI's clients write lists. */
function isList(name: string): boolean {
  return name === "include" || name.endsWith("[]");
}
