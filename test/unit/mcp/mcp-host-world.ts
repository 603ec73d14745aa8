/** Hosts over the server of fixtures/mcp, and what they log. */

import { fileURLToPath } from "node:url";
import { expect, vi } from "vitest";
import type { McpServerConfig } from "../../../src/mcp/settings.ts";
import { McpHost, type McpHostOptions } from "../../../src/mcp/host.ts";
import type { Tool } from "../../../src/tools/types.ts";
import { toolContext } from "../../support/tool-context.ts";

export const fixture = fileURLToPath(new URL("../../fixtures/mcp/server.mjs", import.meta.url));
export const never = toolContext();

type LogLine = { level: string; message: string; [field: string]: unknown };

export const hosts: McpHost[] = [];
export const lines: LogLine[] = [];

/** After each test. */
export async function closeHosts(): Promise<void> {
  vi.useRealTimers();
  vi.restoreAllMocks();
  await Promise.all(hosts.map((host) => host.close()));
  hosts.length = 0;
  lines.length = 0;
}

export function server(id: string, ...args: string[]): McpServerConfig {
  return { id, command: process.execPath, args: [fixture, ...args], env: {} };
}

export async function start(
  servers: McpServerConfig[],
  options: Partial<McpHostOptions> = {},
): Promise<McpHost> {
  const write = (level: string) => (fields: object, message: string) =>
    lines.push({ ...fields, level, message });
  const log = { debug: write("debug"), info: write("info"), warn: write("warn") };
  const host = new McpHost(servers, {
    log,
    version: "0.0.0",
    reconnectDelayMs: 20,
    // On a busy machine a process takes its time to start.
    startPatienceMs: 30_000,
    ...options,
  });
  hosts.push(host);
  await host.start();
  return host;
}

export function find(host: McpHost, name: string): Tool {
  const tool = host.tools().find(({ definition }) => definition.name === name);
  expect(tool, name).toBeDefined();
  return tool!;
}

export function names(host: McpHost): string[] {
  return host.tools().map(({ definition }) => definition.name);
}
