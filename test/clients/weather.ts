// One round of a tool that the shipped model knows: it asks for the weather and repeats what it gets.
import { afterAll, beforeAll, expect } from "vitest";
import { serveCommand, type ServedCommand } from "../support/command-line.ts";

export const question = "What is the weather in Paris?";
export const answer = "It is 21 degrees and sunny in Paris.";
export const description = "Get the current weather for a location.";
export const parameters = {
  type: "object" as const,
  properties: { city: { type: "string" as const, description: "City name" } },
  required: ["city"],
};

/** Calls of the tool, as its arguments came. */
export const asked: unknown[] = [];

export function weather(args: unknown): string {
  asked.push(args);
  return JSON.stringify({
    city: (args as { city: string }).city,
    temperature: 21,
    condition: "sunny",
  });
}

let server: ServedCommand;

/** The command line with the model that ships; nothing is scripted. */
export function serveForTests(): { url: () => string } {
  beforeAll(async () => {
    server = await serveCommand("--log-level=warn");
  });
  afterAll(async () => {
    expect(await server.stop()).toBe(0);
  });
  return { url: () => server.url };
}

/** The tool ran once, with the city that was asked about. */
export function expectOneCall(): void {
  expect(asked.splice(0)).toEqual([{ city: "Paris" }]);
}

/** Tokens that were found in the KV cache, and rows that were computed, since the server started. */
export async function counters(): Promise<{ cached: number; prefilled: number; prompt: number }> {
  const text = await (await fetch(`${server.url}/metrics`)).text();
  const value = (name: string): number =>
    Number(new RegExp(`^fermata_${name}_tokens_total (\\d+)`, "m").exec(text)?.[1]);
  return { cached: value("cached"), prefilled: value("prefilled"), prompt: value("prompt") };
}
