/** Which MCP servers to run: from an `mcp.json` file or from one command line. */

import { type ConfigKind, ConfigReader, readConfigFile } from "../config-reader.ts";
import { type ApprovalPolicy, type McpToolRules, noRules } from "./rules.ts";
import type { McpAddress, McpOAuth, McpProcess, McpSampling, McpServerConfig } from "./settings.ts";

const kind: ConfigKind = { title: "MCP configuration ", code: "mcp_config_invalid" };
/** Id of the server that `--mcp-command` starts. */
const singleServerId = "mcp";

/** What leads to the server; variables are replaced here alone, since a tool's name is a name. */
/** Each list: names of one key in different programs. */
const urlKeys = ["url", "serverUrl", "httpUrl"];
const allowKeys = ["allowedTools", "includeTools"];
const denyKeys = ["disabledTools", "excludeTools"];
const doorKeys = ["command", "args", "env", "cwd", ...urlKeys, "headers", "oauth"];
const ruleKeys = ["tools", ...allowKeys, ...denyKeys, "readOnly", "approval"];
const timeKeys = ["startTimeoutSeconds", "timeoutSeconds", "totalTimeoutSeconds"];
const askingKeys = ["sampling", "elicitation"];
const knownKeys = [
  ...doorKeys,
  "type",
  "transport",
  "disabled",
  "enabled",
  ...ruleKeys,
  ...timeKeys,
  ...askingKeys,
  "instructions",
];
/** Of other programs' files, which people copy. What is unknown to everybody is a slip and refused. */
const foreignKeys = [
  "alwaysAllow",
  "autoApprove",
  "description",
  "envFile",
  "icon",
  "name",
  "timeout",
  "trust",
];
const transports: Record<string, McpAddress["transport"] | "stdio"> = {
  stdio: "stdio",
  local: "stdio",
  http: "http",
  "streamable-http": "http",
  streamableHttp: "http",
  streamable_http: "http",
  sse: "sse",
};
const headerName = /^[A-Za-z0-9!#$%&'*+.^_`|~-]+$/;
const maxSeconds = 86_400;
const defaultSampledTokens = 4096;

export function mcpServerFromCommand(
  command: string,
  args: string[],
): McpServerConfig & McpProcess {
  return { id: singleServerId, command, args, env: {} };
}

/** @throws FermataError mcp_config_invalid, naming the file and the key */
export function readMcpConfig(
  path: string,
  environment: NodeJS.ProcessEnv = process.env,
): McpServerConfig[] {
  return parseMcpConfig(readConfigFile(kind, path).value, path, environment);
}

/** Servers in the file's order. Disabled ones (`"disabled": true`) are left out. */
export function parseMcpConfig(
  json: unknown,
  path: string,
  environment: NodeJS.ProcessEnv = process.env,
): McpServerConfig[] {
  const servers = new ConfigReader(kind, path, json).at("mcpServers");
  if (servers.value === undefined) throw servers.fails("is missing");
  return servers.entries().flatMap(([id, entry]) => {
    if (id === "") throw servers.fails("has a server with an empty id");
    entry.knows(knownKeys, foreignKeys);
    if (entry.flag("disabled", false) || !entry.flag("enabled", true)) return [];
    return [parseServer(id, entry, environment)];
  });
}

function parseServer(
  id: string,
  entry: ConfigReader,
  environment: NodeJS.ProcessEnv,
): McpServerConfig {
  return {
    id,
    rules: readRules(entry),
    startTimeoutMs: readMilliseconds(entry, "startTimeoutSeconds"),
    timeoutMs: readMilliseconds(entry, "timeoutSeconds"),
    totalTimeoutMs: readMilliseconds(entry, "totalTimeoutSeconds"),
    sampling: readSampling(entry.at("sampling")),
    elicitation: entry.flag("elicitation", true),
    instructions: entry.flag("instructions", true),
    ignoredKeys: Object.keys(entry.object()).filter((key) => foreignKeys.includes(key)),
    ...readDoor(entry, environment),
  };
}

function readDoor(entry: ConfigReader, environment: NodeJS.ProcessEnv): McpProcess | McpAddress {
  const urlKey = keyOf(entry, urlKeys);
  const isRemote = urlKey !== undefined;
  const transport = readTransport(entry) ?? (urlKey === "httpUrl" ? "http" : undefined);
  if (isRemote && entry.has("command"))
    throw entry.at(urlKey).fails("excludes a command: a server is started or reached, not both");
  if (isRemote && transport === "stdio")
    throw entry.at("type").fails('must be "http" or "sse" for a server with a url');
  if (!isRemote && transport !== undefined && transport !== "stdio")
    throw entry.at("url").fails("is missing");
  if (!isRemote && entry.has("headers"))
    throw entry.at("headers").fails("are for servers with a url");
  if (!isRemote && entry.has("oauth")) throw entry.at("oauth").fails("is for servers with a url");
  if (!isRemote && !entry.has("command"))
    throw entry.at("command").fails("is missing, and so is a url");
  const door = entry.expanded(doorKeys, environment);
  if (isRemote)
    return {
      url: readUrl(door, urlKey),
      transport: transport === undefined || transport === "stdio" ? "auto" : transport,
      headers: readHeaders(door.at("headers")),
      oauth: door.has("oauth") ? readOAuth(door.at("oauth")) : undefined,
    };
  return {
    command: door.text("command"),
    args: door.has("args") ? door.at("args").texts() : [],
    env: door.at("env").textsByName(),
    cwd: door.has("cwd") ? door.text("cwd") : undefined,
  };
}

/** `type`, or `transport` as some programs call it. */
function readTransport(entry: ConfigReader): McpAddress["transport"] | "stdio" | undefined {
  const at = entry.at(entry.has("type") ? "type" : "transport");
  if (at.value === undefined) return undefined;
  const transport = typeof at.value === "string" ? transports[at.value] : undefined;
  if (transport !== undefined) return transport;
  throw at.fails('must be "stdio", "http" (Streamable HTTP) or "sse"');
}

function readUrl(door: ConfigReader, key: string): string {
  const text = door.text(key);
  const url = URL.canParse(text) ? new URL(text) : null;
  if (url === null || !["http:", "https:"].includes(url.protocol))
    throw door.at(key).fails("must be an http or https URL");
  return url.href;
}

function readHeaders(headers: ConfigReader): Record<string, string> {
  const texts = headers.textsByName();
  for (const [name, value] of Object.entries(texts)) {
    if (!headerName.test(name)) throw headers.at(name).fails("is not a legal header name");
    if (/[^\t\x20-\x7e\x80-\xff]/.test(value))
      throw headers.at(name).fails("has characters that a header cannot hold");
  }
  return texts;
}

const oauthKeys = ["clientId", "clientSecret", "scope", "issuer", "pkce", "callbackPort"];
/** Of other programs: the server says where its logins are. */
const foreignOAuthKeys = ["authorizationUrl", "enabled", "redirectUri", "tokenUrl"];

function readOAuth(oauth: ConfigReader): McpOAuth {
  oauth.knows(oauthKeys, foreignOAuthKeys);
  const textOf = (key: string): string | undefined =>
    oauth.has(key) ? oauth.text(key) : undefined;
  return {
    clientId: textOf("clientId"),
    clientSecret: textOf("clientSecret"),
    scope: textOf("scope"),
    issuer: textOf("issuer"),
    pkce: oauth.flag("pkce", false),
    callbackPort: oauth.has("callbackPort") ? oauth.number("callbackPort", 1, 65_535) : undefined,
  };
}

function readRules(entry: ConfigReader): McpToolRules {
  const tools = entry.at("tools");
  const isList = Array.isArray(tools.value);
  if (!isList) tools.knows(["allow", "deny"]);
  const readOnly = entry.at("readOnly");
  return {
    ...noRules,
    allow: readNames(entry, isList ? tools : tools.at("allow"), allowKeys),
    deny: readNames(entry, isList ? undefined : tools.at("deny"), denyKeys) ?? [],
    readOnly: typeof readOnly.value === "boolean" ? readOnly.value : namesOf(readOnly),
    approval: readApproval(entry.at("approval")),
  };
}

/** What stands at `own`, or under one of the keys that say the same. */
function readNames(
  entry: ConfigReader,
  own: ConfigReader | undefined,
  keys: readonly string[],
): string[] | null {
  const key = keyOf(entry, keys);
  if (key === undefined) return own === undefined ? null : namesOf(own);
  if (own?.value !== undefined)
    throw entry.at(key).fails(`says the same as ${own.key}: send one of them`);
  return namesOf(entry.at(key));
}

function namesOf(names: ConfigReader): string[] | null {
  return names.value === undefined ? null : names.texts();
}

/** Of keys that say the same: the one that is there. */
function keyOf(entry: ConfigReader, keys: readonly string[]): string | undefined {
  const [key, another] = keys.filter((each) => entry.has(each));
  if (another !== undefined) throw entry.at(another).fails(`says the same as "${key}": send one`);
  return key;
}

/** One policy for all tools, or an object of policies by name. */
function readApproval(approval: ConfigReader): McpToolRules["approval"] {
  const { value } = approval;
  if (value === undefined) return [];
  const byName: [string, ConfigReader][] =
    typeof value === "object" ? approval.entries() : [["*", approval]];
  const policies = byName.map(([pattern, policy]): [string, ApprovalPolicy] => [
    pattern,
    readPolicy(policy),
  ]);
  // The longer a pattern, the more it says; names without a star come first.
  const weight = ([pattern]: [string, ApprovalPolicy]): number =>
    pattern.includes("*") ? pattern.length : Number.MAX_SAFE_INTEGER;
  return policies.sort((a, b) => weight(b) - weight(a));
}

function readPolicy(policy: ConfigReader): ApprovalPolicy {
  const { value } = policy;
  if (value === "never" || value === "always" || value === "annotations") return value;
  throw policy.fails('must be "never", "always" or "annotations"');
}

/** `true`, or an object of limits. */
function readSampling(sampling: ConfigReader): McpSampling | undefined {
  const { value } = sampling;
  if (value === undefined || value === false) return undefined;
  if (value === true) return { maxTokens: defaultSampledTokens, context: false };
  if (typeof value !== "object") throw sampling.fails("must be true, false or an object");
  sampling.knows(["maxTokens", "context"]);
  const { value: maxTokens = defaultSampledTokens } = sampling.at("maxTokens");
  if (!Number.isSafeInteger(maxTokens) || (maxTokens as number) < 1)
    throw sampling.at("maxTokens").fails("must be a whole number, at least 1");
  return { maxTokens: maxTokens as number, context: sampling.flag("context", false) };
}

function readMilliseconds(entry: ConfigReader, key: string): number | undefined {
  const { value } = entry.at(key);
  if (value === undefined) return undefined;
  if (typeof value === "number" && value > 0 && value <= maxSeconds) return value * 1000;
  throw entry.at(key).fails(`must be a number of seconds, at most ${maxSeconds}`);
}
