// What `fermata serve` does about tools where everybody can reach them, or a person is there to be asked.
// Needs `npm run build`.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { serveCommand } from "../support/command-line.ts";
import { eventually } from "../support/eventually.ts";

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "fermata-open-port-"));
  const echo = { command: "node", args: ["test/fixtures/mcp/server.mjs", "echo"] };
  const config = join(folder, "mcp.json");
  writeFileSync(config, JSON.stringify({ mcpServers: { files: echo } }));
  vi.stubEnv("FERMATA_MCP_CONFIG", config);
});
afterAll(() => {
  vi.unstubAllEnvs();
  rmSync(folder, { recursive: true });
});

test("tools on an open port get a key of the run, told once and with a link for the page", async () => {
  const server = await serveCommand("--host=0.0.0.0", "--no-auth");
  try {
    const key = await eventually(() => {
      const [, found] = /Key +(\S+) \(of this run/.exec(server.out()) ?? [];
      expect(found).toBeDefined();
      return found!;
    });
    expect(key.length).toBeGreaterThan(20);
    expect(server.out()).toContain(`/#key=${key}`);
    expect(server.log()).not.toContain(key);
    const models = `${server.url}/v1/models`;
    expect((await fetch(models)).status).toBe(401);
    const headers = { authorization: `Bearer ${key}` };
    expect((await fetch(models, { headers })).status).toBe(200);
  } finally {
    await server.stop();
  }
});

const says = "other APIs run them (--approval)";
test.each([
  { options: [], approval: "always" },
  { options: ["--approval=never"], approval: "never" },
])("tools that are not read-only, $options", async ({ options, approval }) => {
  const server = await serveCommand(...options);
  try {
    await server.toolsReady();
    const reply = await fetch(`${server.url}/api/tools`);
    const { servers } = (await reply.json()) as { servers: object[] };
    expect(servers).toMatchObject([{ tools: [{ approval }] }]);
    await eventually(() => expect(server.out()).toContain("Try it:"));
    expect(server.out().includes(says)).toBe(approval === "always");
  } finally {
    await server.stop();
  }
});
