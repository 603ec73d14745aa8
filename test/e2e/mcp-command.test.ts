// `fermata mcp` and /mcp, as MCP clients know them: the SDK's client, real processes, the shipped model.
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type ServedCommand, serveCommand } from "../support/command-line.ts";
import { eventually } from "../support/eventually.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));
const key = "a-key-for-this-test";
const agents = {
  supervisor: "writer",
  agents: { writer: { description: "Writes poems.", instructions: "You write poems." } },
};
const short = { prompt: "Say hello.", max_tokens: 12, temperature: 0, seed: 1 };

let folder = "";
let server: ServedCommand;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "fermata-mcp-"));
  await writeFile(join(folder, "agents.json"), JSON.stringify(agents));
  server = await serveCommand("--agents", join(folder, "agents.json"), "--api-key", key);
});

afterAll(async () => {
  await server.stop();
  await rm(folder, { recursive: true, force: true });
});

interface Connected {
  client: Client;
  errors(): string;
}

async function connect(transport: Transport): Promise<Client> {
  const client = new Client({ name: "test", version: "1" });
  await client.connect(transport);
  return client;
}

async function overStdio(...args: string[]): Promise<Connected> {
  const transport = new StdioClientTransport({
    command: process.execPath,
    args: [join(root, "dist/cli/main.js"), "mcp", ...args],
    cwd: folder,
    stderr: "pipe",
  });
  let errors = "";
  transport.stderr?.on("data", (text) => (errors += String(text)));
  return { client: await connect(transport), errors: () => errors };
}

async function overHttp(headers: Record<string, string>): Promise<Client> {
  const url = new URL(`${server.url}/mcp`);
  return connect(new StreamableHTTPClientTransport(url, { requestInit: { headers } }) as Transport);
}

const textOf = (result: object): string => {
  const { content } = result as { content: { type: string; text: string }[] };
  expect(content).toHaveLength(1);
  return content[0]!.text;
};

async function chatCompletion(messages: object[], model = "default"): Promise<string> {
  const { prompt: _prompt, ...rest } = short;
  const response = await fetch(`${server.url}/v1/chat/completions`, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: `Bearer ${key}` },
    body: JSON.stringify({ model, messages, ...rest }),
  });
  const { choices } = (await response.json()) as { choices: { message: { content: string } }[] };
  return choices[0]!.message.content;
}

async function running(): Promise<number> {
  const response = await fetch(`${server.url}/metrics`, { headers: { "x-api-key": key } });
  return Number(
    /^fermata_sequences\{.*state="running".*\} (\d+)/m.exec(await response.text())?.[1] ?? NaN,
  );
}

let marks = 0;

/** All that was logged so far: the log is in order, and the request that is made here comes last. */
async function logged(mark: string): Promise<string> {
  const path = `/${mark}-${++marks}`;
  await fetch(`${server.url}${path}`, { headers: { "x-api-key": key } });
  await eventually(async () => expect(server.log()).toContain(`"path":"${path}","status"`));
  return server.log();
}

const user = { role: "user", content: short.prompt };

describe.each(["stdio", "http"])("%s", (door) => {
  let client: Client;
  beforeAll(async () => {
    client =
      door === "http"
        ? await overHttp({ authorization: `Bearer ${key}` })
        : (await overStdio("--url", server.url, "--api-key", key)).client;
  });
  afterAll(() => client.close());

  test("each agent is a tool, and so is the model", async () => {
    const { tools } = await client.listTools();
    expect(tools.map(({ name }) => name)).toEqual(["writer", "chat"]);
    expect(tools[0]).toMatchObject({
      description: "Writes poems.",
      inputSchema: { required: ["prompt"] },
    });
    expect(Object.keys(tools[1]!.inputSchema.properties ?? {})).toContain("system");
    expect(Object.keys(tools[0]!.inputSchema.properties ?? {})).not.toContain("system");
  });

  test("a call answers as the same chat completion does", async () => {
    const plain = await client.callTool({ name: "chat", arguments: short });
    expect(plain.isError).toBe(false);
    expect(textOf(plain)).toContain(await chatCompletion([user]));
    const system = "You are a cat.";
    const cat = await client.callTool({ name: "chat", arguments: { ...short, system } });
    expect(textOf(cat)).toContain(
      await chatCompletion([{ role: "system", content: system }, user]),
    );
    const poem = await client.callTool({ name: "writer", arguments: short });
    expect(textOf(poem)).toContain(await chatCompletion([user], "writer"));
  });

  test("what is wrong with a call is said in its result", async () => {
    const result = await client.callTool({ name: "chat", arguments: { prompt: 7 } });
    expect(result.isError).toBe(true);
    expect(textOf(result)).toContain('"prompt" must be a string');
    await expect(client.callTool({ name: "nobody", arguments: {} })).rejects.toThrow(
      /^MCP error -32602: Unknown tool: nobody$/,
    );
  });

  test("progress comes while it works, and a cancelled call stops the generation", async () => {
    const stop = new AbortController();
    const before = await logged("before");
    const messages: string[] = [];
    const call = client.callTool(
      { name: "chat", arguments: { prompt: "harbour ".repeat(1500) } },
      undefined,
      {
        signal: stop.signal,
        onprogress: ({ message = "" }) => {
          messages.push(message);
          if (message === "reading the prompt") stop.abort();
        },
      },
    );
    await expect(call).rejects.toThrow();
    expect(messages).toContain("reading the prompt");
    await eventually(async () => expect(await running()).toBe(0));
    // The connection is as good as before.
    expect((await client.listTools()).tools).toHaveLength(2);
    const during = (await logged("after")).slice(before.length);
    expect(during).toContain('"path":"/mcp"');
    expect(during).not.toContain("answer finished");
  });
});

test("a wrong key is named in the error", async () => {
  await expect(overHttp({ authorization: "Bearer wrong" })).rejects.toThrow("not known");
  await expect(overStdio("--url", server.url, "--api-key", "wrong")).rejects.toThrow(
    "The API key is not known",
  );
});

test("GET and DELETE are refused as the protocol has it", async () => {
  for (const method of ["GET", "DELETE"]) {
    const response = await fetch(`${server.url}/mcp`, { method, headers: { "x-api-key": key } });
    expect(response.status).toBe(405);
  }
});

test("without a server, the engine runs in the process, and standard output has the protocol alone", async () => {
  const { client, errors } = await overStdio("--ctx-size", "2048", "--log-level", "info");
  const { tools } = await client.listTools();
  expect(tools.map(({ name }) => name)).toEqual(["chat"]);
  const result = await client.callTool({ name: "chat", arguments: { ...short, max_tokens: 4 } });
  expect(result.isError).toBe(false);
  // What is not the protocol would have been an error of the client's transport.
  expect(errors()).toContain("Starting the engine in this process");
  expect(errors()).toContain("answer finished");
  await client.close();
});

test("a server that is gone is an error of each call, not the end", async () => {
  const other = await serveCommand("--ctx-size", "2048");
  const { client } = await overStdio("--url", other.url);
  expect((await client.listTools()).tools).toHaveLength(1);
  await other.stop();
  await expect(client.listTools()).rejects.toThrow(`No server answers at ${other.url}`);
  await client.close();
});
