/** Every method of openai's client for JavaScript, found by walking the client. */

import type OpenAI from "openai";
import { APIResource } from "openai/resource";

export interface SdkMethod {
  /** Such as `chat.completions.create`. */
  name: string;
  /** Of its source. */
  parameters: string[];
  source: string;
  call(...args: unknown[]): unknown;
}

/** What a call led to: a request and its answer. */
export interface Exchange {
  method: string;
  path: string;
  status: number;
  type: string;
  body: string;
}

export function methodsOf(client: OpenAI): SdkMethod[] {
  return walk(client, "", new Set()).toSorted((a, b) => (a.name < b.name ? -1 : 1));
}

function walk(resource: object, prefix: string, seen: Set<object>): SdkMethod[] {
  if (seen.has(resource)) return [];
  seen.add(resource);
  const methods = resource instanceof APIResource ? methodsOfResource(resource, prefix) : [];
  const below = Object.entries(resource)
    .filter(([name, value]) => !name.startsWith("_") && value instanceof APIResource)
    .flatMap(([name, value]) => walk(value as object, `${prefix}${name}.`, seen));
  return [...methods, ...below];
}

function methodsOfResource(resource: object, prefix: string): SdkMethod[] {
  const methods: SdkMethod[] = [];
  const names = new Set<string>();
  let holder: object | null = Object.getPrototypeOf(resource) as object;
  for (; holder !== null && holder !== Object.prototype; holder = Object.getPrototypeOf(holder))
    for (const name of Object.getOwnPropertyNames(holder)) names.add(name);
  for (const name of names) {
    const method: unknown = Reflect.get(resource, name);
    if (name === "constructor" || typeof method !== "function") continue;
    const source = String(method);
    const head = /\(([^)]*)\)/.exec(source)?.[1] ?? "";
    const parameters = head.split(",").map((part) => part.trim().replace(/\s*=.*$/, ""));
    const call = (...args: unknown[]): unknown => Reflect.apply(method, resource, args);
    methods.push({ name: prefix + name, parameters, source, call });
  }
  return methods;
}

/** Arguments with which it sends a request: an id for what stands in the path, else what a body may have. */
export function argumentsOf({ parameters, source }: SdkMethod): unknown[] {
  return parameters
    .filter((name) => name !== "" && name !== "options")
    .map((name) => {
      if (/^(?:body|params|query|\{)/.test(name)) return idsIn(source);
      return /^(?:file|files|.*Files?)$/.test(name) ? [] : "nothing";
    });
}

/** Those that its source reads, or a method that it calls. */
function idsIn(source: string): object {
  const read = [...source.matchAll(/\b(\w+_id|fine_tuned_model_checkpoint)\b/g)].map(([id]) => id);
  const ids = ["thread_id", "project_id", "fine_tuned_model_checkpoint", ...read];
  return Object.fromEntries(ids.map((id) => [id, "nothing"])) as object;
}
