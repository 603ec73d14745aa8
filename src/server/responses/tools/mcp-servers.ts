/** A tool of type `mcp`: a server that the operator configured, by its label, or one of the request's own, by its URL. */

import { FermataError } from "../../../errors.ts";
import type { ConnectedServer, ServerConnector, Tool } from "../../../tools/types.ts";
import { optional, refused, required, fieldError } from "../../body/field.ts";
import {
  boolean,
  dictionary,
  either,
  list,
  mapped,
  notNull,
  object,
  oneOf,
  text,
} from "../../body/values.ts";

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

const names = list(text(), { remedy: "Send the tools' names" });

/** An array of names, or an object with `tool_names` and `read_only`, of which each narrows. */
const filter = either(
  {
    array: mapped(names, hasName),
    // Other keys are refused: what is not understood must not let more tools through.
    object: mapped(
      object(
        { tool_names: optional(names), read_only: optional(boolean) },
        'Send {"tool_names": […]}',
        "refused",
      ),
      ({ tool_names: listed, read_only: readOnly }): McpToolFilter => {
        const isNamed = listed === undefined ? all : hasName(listed);
        return (name, isReadOnly) =>
          (readOnly === undefined || isReadOnly === readOnly) && isNamed(name, isReadOnly);
      },
    ),
  },
  "an array of names or an object",
  "Send the tools' names",
);

function hasName(listed: readonly string[]): McpToolFilter {
  const known = new Set(listed);
  return (name) => known.has(name);
}

function all(): boolean {
  return true;
}

const showPolicy = 'Send "always", "never" or {"never": {"tool_names": […]}}';
const approval = either(
  {
    string: mapped(
      oneOf(["always", "never"], "policy"),
      (policy): McpToolFilter =>
        () =>
          policy === "always",
    ),
    object: mapped(
      object({ never: optional(filter), always: optional(filter) }, showPolicy, "refused"),
      ({ never, always }): McpToolFilter =>
        (...tool) =>
          always?.(...tool) === true || never?.(...tool) !== true,
    ),
  },
  "a policy",
  showPolicy,
);

const showHeaders = "Send strings by header name";
const headers = mapped(
  dictionary(text({ remedy: showHeaders }), { remedy: showHeaders }),
  (given, path) => {
    for (const [name, value] of Object.entries(given)) {
      // What a header cannot hold.
      if (/^[\w!#$%&'*+.^`|~-]+$/.test(name) && /^[\t\x20-\x7e\x80-\xff]*$/.test(value)) continue;
      const field = `${path}.${name.slice(0, 64)}`;
      throw fieldError("invalid_value", field, "is not a legal header", showHeaders);
    }
    return given;
  },
);

const mcpFields = object(
  {
    server_url: optional(text()),
    headers: optional(headers, "", {}),
    authorization: optional(text()),
    server_label: required(
      notNull(text({ min: 1, remedy: "Send the id of a configured MCP server" })),
    ),
    connector_id: refused(
      "names a connector of OpenAI's, which is not run here",
      "Send server_label, or server_url where the operator allows it",
    ),
    allowed_tools: optional(filter, "", all),
    require_approval: optional(approval, "default `always`, as at OpenAI", all),
  },
  'Send {"server_label": …}',
  "passed over",
);

export const mcpTool = mapped(mcpFields, (given, field): McpToolRequest => {
  const { server_label: server, server_url: url, authorization } = given;
  const address =
    url === undefined ? null : { url, headers: headersOf(given.headers, authorization) };
  if (address !== null && !/^[A-Za-z0-9_-]{1,32}$/.test(server)) {
    const remedy = "Send 1 to 32 letters, digits, underscores or hyphens";
    throw fieldError("invalid_value", `${field}.server_label`, "is not a legal name", remedy);
  }
  const { allowed_tools: isAllowed, require_approval: needsApproval } = given;
  return { server, address, isAllowed, needsApproval, field };
});

function headersOf(given: Record<string, string>, authorization: string | undefined) {
  return authorization === undefined
    ? given
    : { ...given, authorization: `Bearer ${authorization}` };
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
      const problem = "names a server that is not configured here";
      const remedy =
        "Send the server_label of a configured MCP server, or start the server with --allow-request-mcp";
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
