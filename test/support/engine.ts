// A real engine on the model that ships, for the lanes that need one.
import { fileURLToPath } from "node:url";
import { Engine } from "../../src/engine/engine.ts";
import type {
  EngineOptions,
  GenerateRequest,
  Generation,
  GenerationEvent,
  PauseTriggers,
  Sampling,
} from "../../src/engine/types.ts";
import { greedy } from "./sampling.ts";

export const modelPath =
  process.env["FERMATA_TEST_MODEL"] ??
  fileURLToPath(new URL("../../models/fermata-small.gguf", import.meta.url));

export const holdAtEnd: PauseTriggers = {
  callOpen: "",
  callClose: "",
  holdAtEnd: "always",
  holdAtTextAfterCall: false,
};

export function loadTestEngine(options: Partial<EngineOptions> = {}): Promise<Engine> {
  return Engine.load({
    modelPath,
    contextSize: 2048,
    parallel: 2,
    threads: 1,
    audit: true,
    ...options,
  });
}

/** Tokens of no meaning, the same for the same seed. */
export function words(seed: number, count: number): number[] {
  return Array.from({ length: count }, (_, at) => 300 + ((seed * 7919 + at * 104_729) % 3000));
}

/** Emits these tokens, then an end token. */
export function scripted(tokens: Int32Array): Sampling {
  return { ...greedy, script: tokens };
}

/** A scripted generation that runs for `count` tokens. */
export function longRequest(tokens: Int32Array, count: number): GenerateRequest {
  return { prompt: tokens, sampling: scripted(new Int32Array(count).fill(tokens[0] ?? 0)) };
}

/**
 * A scripted generation that is still going on whenever a test turns to it, however late that is: what the
 * window lets it run ahead of its reader, with the first events that are read, is less. Needs a context of
 * 4096 cells beside the prompt.
 */
export function endlessRequest(tokens: Int32Array): GenerateRequest {
  return longRequest(tokens, 3500);
}

export type EventOf<T extends GenerationEvent["type"]> = Extract<GenerationEvent, { type: T }>;

/** Reads until an event of this type, which it returns. Does not end the generation. */
export async function readUntil<T extends GenerationEvent["type"]>(
  generation: Generation,
  type: T,
): Promise<EventOf<T>> {
  const iterator = generation[Symbol.asyncIterator]();
  for (;;) {
    const step = await iterator.next();
    if (step.done) throw new Error(`The generation ended without a ${type} event.`);
    if (step.value.type === type) return step.value as EventOf<T>;
  }
}

export interface Collected {
  text: string;
  tokens: number[];
  finish: EventOf<"finish">;
}

/** Reads to the end. */
export async function collect(generation: Generation): Promise<Collected> {
  const texts: string[] = [];
  const tokens: number[] = [];
  for await (const event of generation) {
    if (event.type === "text") {
      texts.push(event.text);
      tokens.push(...event.tokens);
    } else if (event.type === "finish") {
      return { text: texts.join(""), tokens, finish: event };
    }
  }
  throw new Error("The generation ended without a finish event.");
}
