// ollama for Python, where there is one: of the machine, or of the environment that the setup makes.
import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { pythonWith } from "../support/python.ts";
import { answer, counters, description, parameters, question, serveForTests } from "./weather.ts";

const server = serveForTests();
const python = pythonWith("ollama");
const model = "fermata-small:latest";

test.skipIf(python === undefined)(
  "models, a streamed tool round, a form, an error (skipped without Python and pip)",
  async () => {
    const tool = JSON.stringify({ name: "get_weather", description, parameters });
    const script = fileURLToPath(new URL("ollama_python.py", import.meta.url));
    const { stdout } = await promisify(execFile)(
      python!,
      [script, server.url(), model, question, tool],
      { timeout: 200_000 },
    );
    const said = JSON.parse(stdout);
    expect(said).toMatchObject({
      listed: [model],
      loaded: [model],
      capabilities: expect.arrayContaining(["completion", "tools"]),
      answer,
      asked: [{ city: "Paris" }],
      rounds: [
        [expect.any(Number), expect.any(Number), "stop"],
        [expect.any(Number), expect.any(Number), "stop"],
      ],
      generated: 4,
      city: { city: expect.any(String) },
      missing: [404, "model 'no-such-model' not found"],
    });
    // The second round's prompt begins with all of the first but the end token, which was never decoded.
    const [[read, written]] = said.rounds as [[number, number], unknown];
    expect((await counters()).cached).toBeGreaterThanOrEqual(read + written - 1);
  },
);
