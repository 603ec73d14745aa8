// The README's first run, as a person has it: the command line in a process of its own, the model that
// ships, sampling as it comes, a real MCP server. Nothing is scripted.
import { type ChildProcess, spawn } from "node:child_process";
import { mkdir, rm, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { createServer } from "node:net";
import type { AddressInfo } from "node:net";
import { fileURLToPath } from "node:url";
import OpenAI from "openai";
import { afterAll, beforeAll, expect, test } from "vitest";

const root = fileURLToPath(new URL("../..", import.meta.url));
const filesystemServer = createRequire(import.meta.url).resolve(
  "@modelcontextprotocol/server-filesystem/dist/index.js",
);
// The path is part of the prompt: a fixed one makes the answer repeatable.
const folder = "/tmp/demo/docs";
const notes = "The harbour opens at nine.\nBring the blue lantern.";

let server: ChildProcess;
let url: string;

async function freePort(): Promise<number> {
  const probe = createServer();
  await new Promise<void>((resolve) => probe.listen(0, "127.0.0.1", resolve));
  const { port } = probe.address() as AddressInfo;
  await new Promise((resolve) => probe.close(resolve));
  return port;
}

beforeAll(async () => {
  await mkdir(folder, { recursive: true });
  await writeFile(`${folder}/notes.txt`, `${notes}\n`);
  const port = await freePort();
  url = `http://127.0.0.1:${port}`;
  server = spawn(
    process.execPath,
    [
      "dist/cli/main.js",
      "serve",
      `--port=${port}`,
      "--mcp-command=node",
      `--mcp-args=${filesystemServer},${folder}`,
      "--store=none",
    ],
    { cwd: root, stdio: ["ignore", "pipe", "inherit"] },
  );
  await new Promise<void>((resolve, reject) => {
    server.once("exit", (code) => reject(new Error(`The server ended with ${code}.`)));
    server.stdout?.on("data", (text: Buffer) => {
      if (String(text).includes("Try it:")) resolve();
    });
  });
});

afterAll(async () => {
  server.removeAllListeners("exit");
  const ended = new Promise((resolve) => server.once("exit", resolve));
  server.kill("SIGTERM");
  expect(await ended).toBe(0);
  await rm(folder, { recursive: true, force: true });
});

test("lists the folder, reads the file and answers with its content, in one stream", async () => {
  const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: "none", maxRetries: 0 });
  const stream = await client.chat.completions.create({
    model: "default",
    messages: [
      {
        role: "user",
        content: `List the files in ${folder}, then read notes.txt and tell me what it says.`,
      },
    ],
    stream: true,
  });
  let answer = "";
  let finish: string | null = null;
  for await (const chunk of stream) {
    answer += chunk.choices[0]?.delta.content ?? "";
    finish = chunk.choices[0]?.finish_reason ?? finish;
  }
  expect(answer).toContain(notes);
  expect(finish).toBe("stop");

  const metrics = await (await fetch(`${url}/metrics`)).text();
  const value = (name: string): number =>
    Number(new RegExp(`^${name} (\\d+)`, "m").exec(metrics)?.[1]);
  expect(metrics).toContain('tool="list_directory",outcome="ok"} 1');
  expect(metrics).toContain('tool="read_text_file",outcome="ok"} 1');
  expect(value("fermata_template_rerenders_total")).toBe(0);
  expect(value("fermata_recomputed_tokens_total")).toBe(0);
});
