// The README's first run, as a person has it: the command line in a process of its own, the model that
// ships, sampling as it comes, a real MCP server. Nothing is scripted.
import { readFile } from "node:fs/promises";
import OpenAI from "openai";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type ServedCommand, serveCommand } from "../support/command-line.ts";
import {
  demoFolder as folder,
  demoNotes as notes,
  makeDemoFolder,
} from "../support/demo-folder.ts";
import { filesystemServer } from "../support/filesystem-server.ts";

let server: ServedCommand;

beforeAll(async () => {
  await makeDemoFolder();
  server = await serveCommand(
    "--mcp-command=node",
    `--mcp-args=${filesystemServer},${folder}`,
    "--store=none",
  );
});

afterAll(async () => {
  expect(await server.stop()).toBe(0);
});

test("lists the folder, reads the file and answers with its content, in one stream", async () => {
  const client = new OpenAI({ baseURL: `${server.url}/v1`, apiKey: "none", maxRetries: 0 });
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

  const metrics = await (await fetch(`${server.url}/metrics`)).text();
  const value = (name: string): number =>
    Number(new RegExp(`^${name} (\\d+)`, "m").exec(metrics)?.[1]);
  expect(metrics).toContain('tool="list_directory",outcome="ok"} 1');
  expect(metrics).toContain('tool="read_text_file",outcome="ok"} 1');
  expect(value("fermata_template_rerenders_total")).toBe(0);
  const readme = await readFile(new URL("../../README.md", import.meta.url), "utf8");
  const [, tokens] = /([\d,]+) prompt tokens for the 14 tools/.exec(readme)!;
  expect(value("fermata_prompt_tokens_total")).toBe(Number(tokens!.replace(",", "")));
  expect(value("fermata_prefilled_tokens_total")).toBe(value("fermata_prompt_tokens_total"));
  expect(value("fermata_recomputed_tokens_total")).toBe(0);
});
