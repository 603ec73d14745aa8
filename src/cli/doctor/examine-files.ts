/** What `fermata doctor` finds fault with, and the files that options name beside the model: read as `fermata serve` reads them. */

import { checkGguf } from "../../engine/gguf-check.ts";
import { checkReranker } from "../../engine/reranker.ts";
import { FermataError } from "../../errors.ts";
import { readKeysFile } from "../keys-file.ts";
import { mcpServers, readAgents } from "../load-services.ts";
import type { ServeConfig } from "../options/serve-options.ts";

export interface Finding {
  /** error: serving would not work. warning: it would, worse than it could. */
  level: "error" | "warning";
  what: string;
  remedy: string;
}

export function findingOf(
  error: unknown,
  remedy: string,
  level: Finding["level"] = "error",
): Finding {
  if (!(error instanceof FermataError)) throw error;
  return { level, what: error.message.replace(/\.$/, ""), remedy };
}

export function examineFiles(config: ServeConfig, env: NodeJS.ProcessEnv): Finding[] {
  const { apiKeysFile, draftModel, embeddingModel, rerankModel } = config;
  const findings: Finding[] = [];
  const reads = <Result>(option: string, read: () => Result): Result | null => {
    try {
      return read();
    } catch (error) {
      findings.push(findingOf(error, `correct it, or change ${option}`));
      return null;
    }
  };
  if (apiKeysFile !== undefined) reads("--api-keys-file", () => readKeysFile(apiKeysFile, env));
  const servers = reads("--mcp-config", () => mcpServers(config));
  // Agents name servers: those must be known.
  if (servers !== null) {
    const names = servers.map(({ id }) => id);
    reads("--agents", () => readAgents(config, names));
  }
  if (draftModel !== undefined) reads("--draft-model", () => checkGguf(draftModel));
  if (embeddingModel !== undefined) reads("--embedding-model", () => checkGguf(embeddingModel));
  if (rerankModel !== undefined) reads("--rerank-model", () => checkReranker(rerankModel));
  return findings;
}
