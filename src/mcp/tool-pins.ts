/**
 * What each tool of a server was when it was first listed, or when a person last approved a call of it. A
 * server that changes a tool later may have gained trust with the old one.
 */

import { RecentMap } from "../recent-map.ts";
import type { McpToolInfo } from "./tool-list.ts";

type Part = "description" | "schema" | "hints";
const parts: readonly Part[] = ["description", "schema", "hints"];
type Definition = Record<Part, string>;

/** A server that lists other names each time must not fill the memory. */
const maxPins = 4000;

export class ToolPins {
  readonly #pinned = new RecentMap<string, Definition>(maxPins);
  readonly #seen = new RecentMap<string, Definition>(maxPins);

  /** @returns what has changed since the last listing, of tools that were listed before */
  see(tools: readonly McpToolInfo[]): { tool: string; changed: Part[] }[] {
    return tools.flatMap((tool) => {
      const now = definitionOf(tool);
      const before = this.#seen.get(tool.name);
      this.#seen.set(tool.name, now);
      if (!this.#pinned.has(tool.name)) this.#pinned.set(tool.name, now);
      const changed = parts.filter((part) => before !== undefined && before[part] !== now[part]);
      return changed.length === 0 ? [] : [{ tool: tool.name, changed }];
    });
  }

  hasChanged(tool: McpToolInfo): boolean {
    const pinned = this.#pinned.get(tool.name);
    const now = definitionOf(tool);
    return pinned !== undefined && parts.some((part) => pinned[part] !== now[part]);
  }

  accept(tool: McpToolInfo): void {
    this.#pinned.set(tool.name, definitionOf(tool));
  }
}

function definitionOf({ description = "", inputSchema, annotations }: McpToolInfo): Definition {
  return {
    description,
    schema: JSON.stringify(inputSchema, sortedKeys),
    hints: JSON.stringify(annotations, sortedKeys),
  };
}

/** A server may write the same schema in another order. */
function sortedKeys(_key: string, value: unknown): unknown {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)));
}
