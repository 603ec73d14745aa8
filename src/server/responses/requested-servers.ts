/** MCP servers that a request names by their URL: connected for one response, where the operator allows it. */

import { FermataError } from "../../errors.ts";
import type { ConnectedServer, ServerConnector, Tool } from "../../tools/types.ts";
import { fieldError } from "../body/fields.ts";
import type { McpToolRequest } from "./mcp-tool.ts";
import type { RequestedTools } from "./tools.ts";

/** A request could have the server call many others at once. */
const maxServers = 4;

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
    requested: RequestedTools | null,
    connector: ServerConnector | null,
    signal: AbortSignal,
  ): Promise<RequestedServers> {
    const own = (requested?.tools ?? []).filter(
      (tool): tool is { kind: "mcp" } & McpToolRequest =>
        tool.kind === "mcp" && tool.address !== null,
    );
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
