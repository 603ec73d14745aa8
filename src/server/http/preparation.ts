/** What an answer waits for before it begins: MCP servers that still start, schemas and grammars that are compiled. */

import type { FastifyReply, FastifyRequest } from "fastify";
import type { ToolProvider } from "../../tools/types.ts";
import { isJsonObject } from "../../json.ts";

export class Preparation {
  readonly #begun: Promise<void>[] = [];
  #running = 0;

  /** See `ChatRequest.onPrepare`. */
  readonly add = (work: Promise<unknown>): void => {
    this.#running += 1;
    const end = (): void => void (this.#running -= 1);
    this.#begun.push(work.then(end, end));
  };

  /**
   * Waits for `first`, for `milliseconds` and until the preparation has ended, so a refusal gets its HTTP status.
   * @throws the error of `first`, if it fails in that time
   */
  async settle(first: Promise<unknown>, milliseconds: number): Promise<void> {
    await settledWithin(first, milliseconds);
    if (this.#running === 0) return;
    await Promise.race([first, Promise.all(this.#begun)]);
    await settledWithin(first, milliseconds);
  }
}

/** Waits for `promise`, at most `milliseconds`. @throws its error, if it fails in that time */
export async function settledWithin(
  promise: Promise<unknown>,
  milliseconds: number,
): Promise<void> {
  promise.catch(() => {});
  let timer: NodeJS.Timeout | undefined;
  const timeout = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, milliseconds);
  });
  await Promise.race([promise, timeout]).finally(() => clearTimeout(timer));
}

export const missingServersHeader = "x-fermata-missing-servers";

/** A route's `preHandler`; it runs before the tools are looked up. */
export function waitForServers(provider: Pick<ToolProvider, "missing"> | null) {
  return async (request: FastifyRequest, reply: FastifyReply): Promise<void> => {
    if (provider?.missing === undefined || !mayCallServers(request.body)) return;
    const servers = await provider.missing();
    if (servers.length === 0) return;
    request.log.warn({ servers }, "MCP servers are not ready: the answer goes without their tools");
    reply.header(missingServersHeader, servers.map((name) => encodeURIComponent(name)).join(","));
  };
}

/** False: the client sends its own tools, or wants none. */
function mayCallServers(body: unknown): boolean {
  if (!isJsonObject(body)) return false;
  const { tools, tool_choice: choice } = body;
  if (choice === "none") return false;
  if (!Array.isArray(tools)) return true;
  // Conversations name tools of servers; tools of responses are objects.
  return tools.some(
    (tool: unknown) => typeof tool === "string" || (isJsonObject(tool) && tool["type"] === "mcp"),
  );
}
