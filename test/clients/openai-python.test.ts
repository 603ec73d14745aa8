// openai for Python, where there is one: of the machine, or of the environment that the setup makes.
import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { pythonWith } from "../support/python.ts";
import { answer, description, parameters, question, serveForTests } from "./weather.ts";

const server = serveForTests();
const path = (relative: string): string => fileURLToPath(new URL(relative, import.meta.url));
const python = pythonWith("openai");

test.skipIf(python === undefined)(
  "a tool round over both APIs (skipped without Python and pip)",
  async () => {
    const tool = JSON.stringify({ name: "get_weather", description, parameters });
    const script = path("openai_python.py");
    const { stdout } = await promisify(execFile)(
      python!,
      [script, `${server.url()}/v1`, question, tool],
      { timeout: 200_000 },
    );
    expect(JSON.parse(stdout)).toMatchObject({
      answers: [answer, answer],
      asked: [{ city: "Paris" }, { city: "Paris" }],
    });
  },
);
