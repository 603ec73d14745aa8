/**
 * What logins at remote MCP servers gave: a file that only its owner may read. By the server's address and not by its
 * name, so that a token never reaches another server. It is read anew at each use: other processes log in and refresh.
 */

import { chmodSync, mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import type {
  OAuthClientInformationMixed,
  OAuthTokens,
} from "@modelcontextprotocol/sdk/shared/auth.js";
import { FermataError } from "../../errors.ts";
import { isJsonObject, parseJson } from "../../json.ts";

export interface McpLogin {
  /** As the server is called in mcp.json; for people. */
  name: string;
  /** Where this client is registered as. */
  client?: OAuthClientInformationMixed | undefined;
  tokens?: OAuthTokens | undefined;
  /** Scopes that calls needed and the login did not have: the next login asks for them too. */
  lacking?: string | undefined;
}

export class McpCredentials {
  readonly path: string;

  constructor(path: string) {
    this.path = path;
  }

  find(url: string): McpLogin | undefined {
    return this.#read()[url];
  }

  /** @returns whether there was one. @param login undefined: it is removed */
  set(url: string, login: McpLogin | undefined): boolean {
    const { [url]: before, ...others } = this.#read();
    this.#write(login === undefined ? others : { ...others, [url]: login });
    return before !== undefined;
  }

  /** @throws FermataError mcp_config_invalid: it is damaged */
  #read(): Record<string, McpLogin> {
    let text: string;
    try {
      text = readFileSync(this.path, "utf8");
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "ENOENT") return {};
      throw error;
    }
    const value = parseJson(text);
    if (isJsonObject(value)) return value as Record<string, McpLogin>;
    const problem = `${this.path} is damaged. Remove it, and log in again with fermata mcp login.`;
    throw new FermataError("mcp_config_invalid", problem);
  }

  /** Whole or not at all. */
  #write(logins: Record<string, McpLogin>): void {
    mkdirSync(dirname(this.path), { recursive: true, mode: 0o700 });
    const next = `${this.path}.${process.pid}`;
    writeFileSync(next, JSON.stringify(logins, null, 2), { mode: 0o600 });
    // It may have been there with other rights.
    chmodSync(next, 0o600);
    renameSync(next, this.path);
  }
}
