// A model that was trained to fill in the middle does, over HTTP.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { serveCommand, type ServedCommand } from "../support/command-line.ts";
import { realModelPath } from "../support/real-models.ts";

const modelPath = realModelPath("qwen2.5-coder");

describe.skipIf(modelPath === undefined)("a gap in code", () => {
  let server: ServedCommand;

  beforeAll(async () => {
    server = await serveCommand(`--model=${modelPath!}`, "--store=none", "--ctx-size=2048");
  }, 120_000);

  afterAll(async () => {
    await server?.stop();
  });

  async function post(path: string, body: object): Promise<object> {
    const response = await fetch(server.url + path, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ ...body, temperature: 0, max_tokens: 12 }),
    });
    return (await response.json()) as object;
  }

  const [before, behind] = ["def add(a, b):\n    return ", "\n\nprint(add(1, 2))\n"];

  test("is filled", async () => {
    const filled = await post("/infill", { input_prefix: before, input_suffix: behind });
    expect(filled).toMatchObject({ content: "a + b" });
    const completed = await post("/v1/completions", { prompt: before, suffix: behind });
    expect(completed).toMatchObject({ choices: [{ text: "a + b", finish_reason: "stop" }] });
  });

  test("is filled with what another file has", async () => {
    const shapes = "def area_of_square(side):\n    return side * side\n";
    const filled = await post("/infill", {
      input_prefix: "from shapes import ",
      input_suffix: "\n",
      input_extra: [{ filename: "shapes.py", text: shapes }],
    });
    expect(JSON.stringify(filled)).toContain('"content":"area_of_square');
  });
});
