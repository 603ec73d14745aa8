/** What tools take of the prompt, and what to do when it is too long for the context. */

import { FermataError } from "../../errors.ts";
import { instructedMessages } from "../../tools/tool-loop.ts";
import type { Tool } from "../../tools/types.ts";
import type { ServerServices } from "../services.ts";
import type { ToolMode } from "./target.ts";

type Counter = Pick<ServerServices["chat"], "countPromptTokens">;

export interface ToolTokens {
  /** Of all tools together. */
  total: number;
  /** Of each server's tools alone, in the order of the tools, by name. It passes between processes as JSON. */
  byServer: Readonly<Record<string, number>>;
}

const known = new WeakMap<
  Counter,
  { tools: readonly Tool[]; tokens: Promise<ToolTokens | null> }
>();

/** Counted once for a list of tools. Null: this model's template cannot say. */
export function toolTokens(chat: Counter, tools: readonly Tool[]): Promise<ToolTokens | null> {
  const last = known.get(chat);
  if (last?.tools === tools) return last.tokens;
  const tokens = count(chat, tools);
  known.set(chat, { tools, tokens });
  return tokens;
}

async function count(chat: Counter, tools: readonly Tool[]): Promise<ToolTokens | null> {
  const byServer = new Map<string, Tool[]>();
  for (const tool of tools) byServer.set(tool.server, [...(byServer.get(tool.server) ?? []), tool]);
  try {
    const least = await promptTokens(chat, []);
    const of = async (some: readonly Tool[]): Promise<number> =>
      (await promptTokens(chat, some)) - least;
    const counts = [...byServer].map(async ([name, own]) => [name, await of(own)] as const);
    const [total, ...each] = await Promise.all([of(tools), ...counts]);
    return { total, byServer: Object.fromEntries(each) };
  } catch (error) {
    if (error instanceof FermataError) return null;
    throw error;
  }
}

function promptTokens(chat: Counter, some: readonly Tool[]): Promise<number> {
  const messages = instructedMessages([{ role: "user", content: "Hello" }], some);
  const tools = some.map(({ definition }) => definition);
  return chat.countPromptTokens({ messages, tools, owner: "" }, { mayExceed: true });
}

/** "files 2913, web 1020" */
export function tokensByServer({ byServer }: ToolTokens): string {
  return Object.entries(byServer)
    .map(([name, tokens]) => `${name} ${tokens}`)
    .join(", ");
}

/** An error that says why the prompt is too long, and the remedies; others as they are. */
export async function explainedLength(
  error: unknown,
  mode: ToolMode,
  chat: Counter,
): Promise<unknown> {
  if (!(error instanceof FermataError) || error.code !== "context_length_exceeded") return error;
  const message = `${error.message} ${await remedy(mode, chat)}`;
  const { code, param, size } = error;
  return new FermataError(code, message, { param: param ?? undefined, size, cause: error });
}

async function remedy(mode: ToolMode, chat: Counter): Promise<string> {
  const larger = "start the server with a larger --ctx-size";
  if (mode.kind === "none") return `Send less, or ${larger}.`;
  if (mode.kind === "external") {
    const tools = mode.tools.map((definition) => ({ definition, server: "" }) as Tool);
    const tokens = await toolTokens(chat, tools);
    const share = tokens === null ? "" : `The tools of the request take ${tokens.total} of them. `;
    return `${share}Send fewer tools or messages, or ${larger}.`;
  }
  const tokens = await toolTokens(chat, mode.tools);
  const share =
    tokens === null ? "" : `The tools take ${tokens.total} of them (${tokensByServer(tokens)}). `;
  return `${share}Choose fewer with "tools": {"allow": […]} in the MCP configuration, or ${larger}.`;
}
