/** Logins at a server that does not behave. Those that go well are in the e2e lane. */

import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { McpCredentials } from "../../../src/mcp/mcp-credentials.ts";
import { login } from "../../../src/mcp/mcp-login.ts";

/** It asks for a login, and says nothing of how. */
const server = createServer((request, response) => {
  if (request.method === "POST") response.writeHead(401).end();
});
beforeEach(async () => {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
});
afterEach(async () => {
  vi.restoreAllMocks();
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
});

test("an authorization server that does not answer ends the login, which says so", async () => {
  const { port } = server.address() as AddressInfo;
  const credentials = new McpCredentials(join(tmpdir(), "no-such-folder", "credentials.json"));
  const { signal } = new AbortController();
  const open = vi.fn();
  // Not fake timers: fetch has timers of its own, which outlive the test.
  const usual = globalThis.setTimeout;
  vi.spyOn(globalThis, "setTimeout").mockImplementation(((
    run: (...given: unknown[]) => void,
    milliseconds?: number,
    ...given: unknown[]
  ) => usual(run, milliseconds === 30_000 ? 1 : milliseconds, ...given)) as typeof setTimeout);
  await expect(
    login({ id: "hub", url: `http://127.0.0.1:${port}/mcp` }, credentials, {
      version: "0",
      open,
      signal,
    }),
  ).rejects.toMatchObject({
    code: "mcp_login_failed",
    message: `The login failed: 127.0.0.1:${port} did not answer within 30 seconds.`,
  });
  expect(open).not.toHaveBeenCalled();
});
