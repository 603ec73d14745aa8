/** One server's entry in an MCP configuration. */

import type { McpAddress, McpProcess, McpServerConfig, McpServerSettings } from "./mcp-settings.ts";
import type { FermataError } from "../errors.ts";
import { type ApprovalPolicy, type McpToolRules, noRules } from "./mcp-rules.ts";
import { expandVariables } from "./mcp-variables.ts";

type Entry = Record<string, unknown>;
/** Names a key, relative to the server's entry, and what is wrong with it. */
type Fail = (key: string, problem: string) => FermataError;

const knownKeys = [
  "command",
  "args",
  "env",
  "cwd",
  "url",
  "type",
  "transport",
  "headers",
  "disabled",
  "tools",
  "allowedTools",
  "readOnly",
  "approval",
  "timeoutSeconds",
  "totalTimeoutSeconds",
];
/** Of other programs' files, which people copy. What is unknown to everybody is a slip and refused. */
const foreignKeys = [
  "alwaysAllow",
  "autoApprove",
  "description",
  "enabled",
  "envFile",
  "icon",
  "name",
  "oauth",
  "timeout",
  "trust",
];
const transports: Record<string, McpAddress["transport"] | "stdio"> = {
  stdio: "stdio",
  http: "http",
  "streamable-http": "http",
  streamableHttp: "http",
  streamable_http: "http",
  sse: "sse",
};
const policies = ["never", "always", "annotations"];
const headerName = /^[A-Za-z0-9!#$%&'*+.^_`|~-]+$/;
const maxSeconds = 86_400;

/** Null: it is disabled. @throws what `fail` makes */
export function parseServer(
  id: string,
  value: unknown,
  environment: NodeJS.ProcessEnv,
  fail: Fail,
): McpServerConfig | null {
  if (!isRecord(value)) throw fail("", "must be an object with a command or a url");
  const unknown = Object.keys(value).find((key) => ![...knownKeys, ...foreignKeys].includes(key));
  if (unknown !== undefined)
    throw fail(unknown, `is not known; the keys are ${knownKeys.join(", ")}`);
  if (readFlag(value, "disabled", fail) === true) return null;
  const entry = expandAll(value, environment, fail);
  return { ...readSettings(id, entry, fail), ...readDoor(entry, fail) };
}

function readDoor(entry: Entry, fail: Fail): McpProcess | McpAddress {
  const { command, url } = entry;
  const transport = readTransport(entry, fail);
  if (command !== undefined && url !== undefined)
    throw fail("url", "excludes a command: a server is started or reached, not both");
  if (url !== undefined) {
    if (transport === "stdio")
      throw fail("type", 'must be "http" or "sse" for a server with a url');
    return {
      url: readUrl(url, fail),
      transport: transport ?? "auto",
      headers: readHeaders(entry, fail),
    };
  }
  if (transport !== undefined && transport !== "stdio") throw fail("url", "is missing");
  if (entry["headers"] !== undefined) throw fail("headers", "are for servers with a url");
  if (command === undefined) throw fail("command", "is missing, and so is a url");
  if (typeof command !== "string" || command === "")
    throw fail("command", "must be a non-empty string");
  const cwd = entry["cwd"];
  if (cwd !== undefined && typeof cwd !== "string") throw fail("cwd", "must be a string");
  const args = readNames(entry["args"] ?? [], "args", fail);
  return { command, args, env: readStrings(entry["env"] ?? {}, "env", fail), cwd };
}

/** `type`, or `transport` as some programs call it. */
function readTransport(entry: Entry, fail: Fail): McpAddress["transport"] | "stdio" | undefined {
  const key = entry["type"] === undefined ? "transport" : "type";
  const value = entry[key];
  if (value === undefined) return undefined;
  const transport = typeof value === "string" ? transports[value] : undefined;
  if (transport === undefined)
    throw fail(key, 'must be "stdio", "http" (Streamable HTTP) or "sse"');
  return transport;
}

function readUrl(value: unknown, fail: Fail): string {
  const url = typeof value === "string" && URL.canParse(value) ? new URL(value) : null;
  if (url === null || !["http:", "https:"].includes(url.protocol))
    throw fail("url", "must be an http or https URL");
  return url.href;
}

function readHeaders(entry: Entry, fail: Fail): Record<string, string> {
  const headers = readStrings(entry["headers"] ?? {}, "headers", fail);
  for (const [name, value] of Object.entries(headers)) {
    if (!headerName.test(name)) throw fail(`headers.${name}`, "is no legal header name");
    if (/[^\t\x20-\x7e\x80-\xff]/.test(value))
      throw fail(`headers.${name}`, "has characters that no header may hold");
  }
  return headers;
}

function readSettings(id: string, entry: Entry, fail: Fail): McpServerSettings {
  const timeoutMs = readSeconds(entry, "timeoutSeconds", fail);
  const totalTimeoutMs = readSeconds(entry, "totalTimeoutSeconds", fail);
  const ignoredKeys = Object.keys(entry).filter((key) => foreignKeys.includes(key));
  return { id, rules: readRules(entry, fail), timeoutMs, totalTimeoutMs, ignoredKeys };
}

function readRules(entry: Entry, fail: Fail): McpToolRules {
  const tools = entry["tools"];
  if (tools !== undefined && !isRecord(tools))
    throw fail("tools", "must be an object with allow and deny");
  for (const key of Object.keys(tools ?? {})) {
    if (key !== "allow" && key !== "deny")
      throw fail(`tools.${key}`, "is not known; the keys are allow and deny");
  }
  const { allow, deny = [] } = tools ?? {};
  const { allowedTools, readOnly } = entry;
  if (allow !== undefined && allowedTools !== undefined)
    throw fail("allowedTools", "says the same as tools.allow: send one of them");
  const allowed =
    allow === undefined
      ? readOptional(allowedTools, (value) => readNames(value, "allowedTools", fail))
      : readNames(allow, "tools.allow", fail);
  return {
    ...noRules,
    allow: allowed,
    deny: readNames(deny, "tools.deny", fail),
    readOnly:
      typeof readOnly === "boolean"
        ? readOnly
        : readOptional(readOnly, (value) => readNames(value, "readOnly", fail)),
    approval: readApproval(entry["approval"], fail),
  };
}

/** One policy for all tools, or an object of policies by name. */
function readApproval(value: unknown, fail: Fail): McpToolRules["approval"] {
  if (value === undefined) return [];
  const byName = isRecord(value) ? value : { "*": value };
  const entries = Object.entries(byName).map(([pattern, policy]): [string, ApprovalPolicy] => {
    if (typeof policy !== "string" || !policies.includes(policy)) {
      const key = isRecord(value) ? `approval.${pattern}` : "approval";
      throw fail(key, 'must be "never", "always" or "annotations"');
    }
    return [pattern, policy as ApprovalPolicy];
  });
  // The longer a pattern, the more it says; names without a star come first.
  const weight = ([pattern]: [string, ApprovalPolicy]): number =>
    pattern.includes("*") ? pattern.length : Number.MAX_SAFE_INTEGER;
  return entries.sort((a, b) => weight(b) - weight(a));
}

function readSeconds(entry: Entry, key: string, fail: Fail): number | undefined {
  const value = entry[key];
  if (value === undefined) return undefined;
  if (typeof value !== "number" || !(value > 0 && value <= maxSeconds))
    throw fail(key, `must be a number of seconds, at most ${maxSeconds}`);
  return value * 1000;
}

function readFlag(entry: Entry, key: string, fail: Fail): boolean | undefined {
  const value = entry[key];
  if (value !== undefined && typeof value !== "boolean") throw fail(key, "must be true or false");
  return value;
}

function readOptional<Value>(value: unknown, read: (value: unknown) => Value): Value | null {
  return value === undefined ? null : read(value);
}

function readNames(value: unknown, key: string, fail: Fail): string[] {
  if (!Array.isArray(value)) throw fail(key, "must be an array of strings");
  value.forEach((name: unknown, index) => {
    if (typeof name !== "string") throw fail(`${key}[${index}]`, "must be a string");
  });
  return value as string[];
}

function readStrings(value: unknown, key: string, fail: Fail): Record<string, string> {
  if (!isRecord(value)) throw fail(key, "must be an object of strings");
  for (const [name, text] of Object.entries(value)) {
    if (typeof text !== "string") throw fail(`${key}.${name}`, "must be a string");
  }
  return value as Record<string, string>;
}

/** Variables in what leads to the server; a tool's name is a name. */
function expandAll(entry: Entry, environment: NodeJS.ProcessEnv, fail: Fail): Entry {
  const expand = (value: unknown, key: string): unknown => {
    if (typeof value === "string") {
      const expanded = expandVariables(value, environment);
      if ("text" in expanded) return expanded.text;
      throw fail(
        key,
        `needs the environment variable ${expanded.missing.join(" and ")}, which is not set`,
      );
    }
    if (Array.isArray(value)) return value.map((item, index) => expand(item, `${key}[${index}]`));
    if (!isRecord(value)) return value;
    const pairs = Object.entries(value).map(([name, item]) => [
      name,
      expand(item, `${key}.${name}`),
    ]);
    return Object.fromEntries(pairs) as Entry;
  };
  const paths = ["command", "args", "env", "cwd", "url", "headers"];
  const pairs = paths.flatMap((key) => (key in entry ? [[key, expand(entry[key], key)]] : []));
  return { ...entry, ...(Object.fromEntries(pairs) as Entry) };
}

function isRecord(value: unknown): value is Entry {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
