/** A tool of type `mcp`: a server that the operator configured, by its label, or one of the request's own, by its URL. */

import { FermataError } from "../../errors.ts";
import type { ConnectedServer, ServerConnector, Tool } from "../../tools/types.ts";
import {
  fieldError,
  isAbsent,
  isObject,
  kindOf,
  readText,
  type JsonObject,
} from "../body/fields.ts";

/** Whether a tool is one of those that are meant: by its own name, and by whether it only reads. */
export type McpToolFilter = (name: string, isReadOnly: boolean) => boolean;

export interface McpToolRequest {
  /** Id of the configured server, or what the request calls its own. */
  server: string;
  /** Null: a configured server. */
  address: McpAddress | null;
  isAllowed: McpToolFilter;
  needsApproval: McpToolFilter;
  field: string;
}

/** Where a server of the request's own is. */
export interface McpAddress {
  url: string;
  headers: Record<string, string>;
}

export function parseMcpTool(entry: JsonObject, field: string): McpToolRequest {
  const { server_label: server, connector_id: connector } = entry;
  const address = readAddress(entry, field);
  if (typeof server !== "string" || server === "") {
    const problem = isAbsent(server) ? "is missing" : "is not a name";
    const remedy = "Send the id of a configured MCP server";
    throw fieldError("missing_field", `${field}.server_label`, problem, remedy);
  }
  if (address !== null && !/^[A-Za-z0-9_-]{1,32}$/.test(server)) {
    const remedy = "Send 1 to 32 letters, digits, underscores or hyphens";
    throw fieldError("invalid_value", `${field}.server_label`, "is not a legal name", remedy);
  }
  if (!isAbsent(connector)) {
    const problem = "names a connector of OpenAI's, which is not run here";
    const remedy = "Send server_label, or server_url where the operator allows it";
    throw fieldError("unsupported_value", `${field}.connector_id`, problem, remedy);
  }
  const isAllowed = readFilter(entry["allowed_tools"], `${field}.allowed_tools`) ?? (() => true);
  const needsApproval = readApproval(entry["require_approval"], `${field}.require_approval`);
  return { server, address, isAllowed, needsApproval, field };
}

function readAddress(entry: JsonObject, field: string): McpAddress | null {
  const url = readText(entry, "server_url", `${field}.`);
  const headers = readHeaders(entry["headers"], `${field}.headers`);
  const authorization = readText(entry, "authorization", `${field}.`);
  if (url === null) return null;
  const bearer = authorization === null ? {} : { authorization: `Bearer ${authorization}` };
  return { url, headers: { ...headers, ...bearer } };
}

function readHeaders(value: unknown, field: string): Record<string, string> {
  if (isAbsent(value)) return {};
  const remedy = "Send strings by header name";
  if (!isObject(value))
    throw fieldError("invalid_type", field, `must be an object, not ${kindOf(value)}`, remedy);
  for (const [name, text] of Object.entries(value)) {
    const place = `${field}.${name.slice(0, 64)}`;
    if (typeof text !== "string")
      throw fieldError("invalid_type", place, `must be a string, not ${kindOf(text)}`, remedy);
    // What a header cannot hold.
    if (!/^[\w!#$%&'*+.^`|~-]+$/.test(name) || !/^[\t\x20-\x7e\x80-\xff]*$/.test(text))
      throw fieldError("invalid_value", place, "is not a legal header", remedy);
  }
  return value as Record<string, string>;
}

/** Absent: always, as at OpenAI. */
function readApproval(value: unknown, field: string): McpToolFilter {
  if (isAbsent(value) || value === "always") return () => true;
  if (value === "never") return () => false;
  if (!isObject(value)) {
    const remedy = 'Send "always", "never" or {"never": {"tool_names": […]}}';
    throw fieldError("invalid_value", field, "is not a known policy", remedy);
  }
  checkKeys(value, ["never", "always"], field);
  const never = readFilter(value["never"], `${field}.never`);
  const always = readFilter(value["always"], `${field}.always`);
  return (...tool) => always?.(...tool) === true || never?.(...tool) !== true;
}

/** An array of names, or an object with `tool_names` and `read_only`, of which each narrows. Null: not given. */
function readFilter(value: unknown, field: string): McpToolFilter | null {
  if (isAbsent(value)) return null;
  if (!isObject(value)) return hasName(value, field);
  // What is not understood must not let more tools through.
  checkKeys(value, ["tool_names", "read_only"], field);
  const { tool_names: names, read_only: readOnly } = value;
  const isNamed = isAbsent(names) ? () => true : hasName(names, `${field}.tool_names`);
  if (isAbsent(readOnly)) return isNamed;
  if (typeof readOnly !== "boolean") {
    const problem = `must be a boolean, not ${kindOf(readOnly)}`;
    throw fieldError("invalid_type", `${field}.read_only`, problem, "Send true or false");
  }
  return (name, isReadOnly) => isReadOnly === readOnly && isNamed(name, isReadOnly);
}

function hasName(list: unknown, field: string): McpToolFilter {
  if (!Array.isArray(list) || list.some((name) => typeof name !== "string")) {
    const problem = `must be an array of names, not ${kindOf(list)}`;
    throw fieldError("invalid_type", field, problem, "Send the tools' names");
  }
  const names = new Set<unknown>(list);
  return (name) => names.has(name);
}

function checkKeys(value: JsonObject, known: readonly string[], field: string): void {
  const unknown = Object.keys(value).find((key) => !known.includes(key));
  if (unknown === undefined) return;
  const place = `${field}.${unknown.slice(0, 64)}`;
  throw fieldError("invalid_value", place, "is not known", `Send ${known.join(" or ")}`);
}

/** A request could have the server call many others at once. */
const maxServers = 4;

/** Servers that a request names by their URL: connected for one response, where the operator allows it. */
export class RequestedServers {
  readonly #byLabel: ReadonlyMap<string, ConnectedServer>;

  private constructor(byLabel: ReadonlyMap<string, ConnectedServer>) {
    this.#byLabel = byLabel;
  }

  /**
   * @param connector null: the operator does not allow it
   * @throws FermataError of status 4xx that names the server's URL; then none is connected
   */
  static async connect(
    requested: readonly McpToolRequest[],
    connector: ServerConnector | null,
    signal: AbortSignal,
  ): Promise<RequestedServers> {
    const own = requested.filter(({ address }) => address !== null);
    const first = own[0];
    if (first === undefined) return new RequestedServers(new Map());
    if (connector === null) {
      const problem = "names a server that the operator of this one did not configure";
      const remedy =
        "Send the server_label of a configured MCP server, or have the server started with --allow-request-mcp";
      throw fieldError("unsupported_value", `${first.field}.server_url`, problem, remedy);
    }
    const extra = own[maxServers];
    if (extra !== undefined) {
      const remedy = `Send at most ${maxServers}`;
      throw fieldError("invalid_value", extra.field, "is one server too many", remedy);
    }
    const settled = await Promise.allSettled(
      own.map(({ server, address }) => connector.connect({ label: server, ...address! }, signal)),
    );
    const connected = new Map<string, ConnectedServer>();
    settled.forEach((one, index) => {
      if (one.status === "fulfilled") connected.set(own[index]!.server, one.value);
    });
    const servers = new RequestedServers(connected);
    const failed = settled.findIndex(({ status }) => status === "rejected");
    if (failed < 0) return servers;
    await servers.close();
    const { reason } = settled[failed] as PromiseRejectedResult;
    throw named(reason, `${own[failed]!.field}.server_url`);
  }

  /** Undefined: the label is not of a server of the request's own. */
  toolsOf(label: string): readonly Tool[] | undefined {
    return this.#byLabel.get(label)?.tools;
  }

  async close(): Promise<void> {
    await Promise.allSettled([...this.#byLabel.values()].map((server) => server.close()));
  }
}

/** The error with the field's whole path: the connector knows no request. */
function named(reason: unknown, field: string): unknown {
  if (!(reason instanceof FermataError)) return reason;
  const told = reason.message.replace('"server_url"', `"${field}"`);
  const message = told.includes(field) ? told : `"${field}": ${told}`;
  return new FermataError(reason.code, message, { param: field, cause: reason.cause });
}
