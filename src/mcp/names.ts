/** Names the model sees for the tools of several servers. */

import { createHash } from "node:crypto";

const legalName = /^[A-Za-z0-9_-]{1,64}$/;
const maxLength = 64;

interface NamedTool<Tool> {
  /** What the model calls; legal for every OpenAI client, unique in the table. */
  exposed: string;
  serverId: string;
  tool: Tool;
}

/**
 * `<server>_<tool>` if `prefixed`, else the bare name. A name that is illegal, too long or taken by
 * more than one tool gets a hash of its server and tool at the end: which name a tool has depends on
 * the set of tools only, never on the order in which servers answered. Route by this table; the
 * prefix cannot be split off again.
 */
export function nameTools<Tool extends { name: string }>(
  servers: readonly { id: string; tools: readonly Tool[] }[],
  prefixed: boolean,
): NamedTool<Tool>[] {
  const wished = servers.flatMap(({ id, tools }) =>
    tools.map((tool) => ({
      wish: prefixed ? `${id}_${tool.name}` : tool.name,
      serverId: id,
      tool,
    })),
  );
  const uses = new Map<string, number>();
  for (const { wish } of wished) {
    const clean = cleanName(wish);
    uses.set(clean, (uses.get(clean) ?? 0) + 1);
  }
  return wished.map(({ wish, serverId, tool }) => {
    const clean = cleanName(wish);
    const asWished = clean === wish && uses.get(clean) === 1;
    return { exposed: asWished ? wish : hashedName(clean, serverId, tool.name), serverId, tool };
  });
}

function cleanName(name: string): string {
  if (legalName.test(name)) return name;
  return name.replace(/[^A-Za-z0-9_-]/g, "_").slice(0, maxLength) || "tool";
}

function hashedName(clean: string, serverId: string, toolName: string): string {
  const hash = createHash("sha256").update(`${serverId}\0${toolName}`).digest("hex").slice(0, 8);
  return `${clean.slice(0, maxLength - hash.length - 1)}_${hash}`;
}
