import { afterAll, beforeAll, expect } from "vitest";
import { Chat } from "../../src/chat/chat.ts";
import type { Engine } from "../../src/engine/engine.ts";
import type { EngineOptions, GenerateRequest, Generation } from "../../src/engine/types.ts";
import { loadTestEngine } from "./engine.ts";

/** One engine for the tests of a `describe`; at its end nothing may be leaked. Call what it returns in a test. */
export function engineOfTests(options: Partial<EngineOptions>): () => Engine {
  let engine: Engine;
  beforeAll(async () => {
    engine = await loadTestEngine(options);
  });
  afterAll(async () => {
    expect(await engine.checkIntegrity()).toBe("");
    await engine.close();
  });
  return () => engine;
}

/** A chat over a real engine that shows `watch` each generation it starts, before anything is read of it. */
export function watchedChat(engine: Engine, watch: (generation: Generation) => void): Chat {
  return new Chat({
    model: engine.model,
    cache: engine.cache,
    tokenize: engine.tokenize.bind(engine),
    tokenBytes: engine.tokenBytes.bind(engine),
    compileGrammar: engine.compileGrammar.bind(engine),
    generate(request: GenerateRequest) {
      const generation = engine.generate(request);
      watch(generation);
      return generation;
    },
  });
}
