/** A person's login at a remote MCP server: PKCE, and a callback on this machine whose state is checked. */

import { randomBytes } from "node:crypto";
import { createServer, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import {
  auth,
  extractWWWAuthenticateParams,
  type OAuthClientProvider,
} from "@modelcontextprotocol/sdk/client/auth.js";
import type {
  OAuthClientInformationMixed,
  OAuthClientMetadata,
  OAuthTokens,
} from "@modelcontextprotocol/sdk/shared/auth.js";
import { LATEST_PROTOCOL_VERSION } from "@modelcontextprotocol/sdk/types.js";
import { FermataError } from "../errors.ts";
import { boundedFetch } from "./mcp-bounded-fetch.ts";
import type { McpCredentials } from "./mcp-credentials.ts";
import { clientMetadata, configuredClient, type OAuthServer } from "./mcp-oauth.ts";
import { describeError, plainText } from "./mcp-text.ts";

interface LoginOptions {
  version: string;
  /** Shows the page where the person logs in. */
  open(url: string): void;
  signal: AbortSignal;
}

const callbackPath = "/callback";
const maxBytes = 1024 ** 2;
const boundFetch = boundedFetch(fetch, maxBytes);

/** @throws FermataError mcp_login_failed | the reason of `signal` */
export async function login(
  server: OAuthServer,
  credentials: McpCredentials,
  { version, open, signal }: LoginOptions,
): Promise<void> {
  const { url, oauth } = server;
  if (!isPrivate(new URL(url)))
    throw failed("the server's url must be https: a token would be readable on the way");
  const demand = await demandOf(url, version);
  const callback = await Callback.listen(oauth?.callbackPort ?? 0);
  try {
    const provider = new PersonLogin(server, credentials, callback, open);
    const fetchFn = boundFetch;
    // The operator's word counts before what the server names.
    const named = oauth?.scope === undefined ? demand : { ...demand, scope: oauth.scope };
    const options = { serverUrl: url, fetchFn, ...named };
    await told(auth(provider, options));
    const authorizationCode = await callback.code(signal);
    await told(auth(provider, { ...options, authorizationCode }));
  } finally {
    callback.close();
  }
}

/** What the server says of the login that it wants. @throws FermataError: it wants none, or does not answer */
async function demandOf(
  url: string,
  version: string,
): Promise<{ resourceMetadataUrl?: URL; scope?: string }> {
  const params = {
    protocolVersion: LATEST_PROTOCOL_VERSION,
    capabilities: {},
    clientInfo: { name: "fermata", version },
  };
  const response = await told(
    boundFetch(url, {
      method: "POST",
      headers: {
        "content-type": "application/json",
        accept: "application/json, text/event-stream",
      },
      body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "initialize", params }),
    }),
  );
  await response.body?.cancel();
  if (response.status !== 401) {
    const problem = response.ok ? "it asks for no login" : `it answers with ${response.status}`;
    throw failed(problem);
  }
  const { resourceMetadataUrl, scope } = extractWWWAuthenticateParams(response);
  return {
    ...(resourceMetadataUrl === undefined ? {} : { resourceMetadataUrl }),
    ...(scope === undefined ? {} : { scope }),
  };
}

/** The client is registered at each login: the port of its callback is another one. */
class PersonLogin implements OAuthClientProvider {
  readonly #server: OAuthServer;
  readonly #credentials: McpCredentials;
  readonly #callback: Callback;
  readonly #open: (url: string) => void;
  #client: OAuthClientInformationMixed | undefined;
  #verifier = "";

  constructor(
    server: OAuthServer,
    credentials: McpCredentials,
    callback: Callback,
    open: (url: string) => void,
  ) {
    this.#server = server;
    this.#credentials = credentials;
    this.#callback = callback;
    this.#open = open;
    this.#client = configuredClient(server.oauth);
  }

  get redirectUrl(): string {
    return this.#callback.url;
  }

  get clientMetadata(): OAuthClientMetadata {
    return clientMetadata(this.#server, this.redirectUrl);
  }

  state(): string {
    return this.#callback.state;
  }

  clientInformation(): OAuthClientInformationMixed | undefined {
    return this.#client;
  }

  saveClientInformation(client: OAuthClientInformationMixed): void {
    this.#client = client;
  }

  /** What was stored is replaced. */
  tokens(): undefined {
    return undefined;
  }

  saveTokens(tokens: OAuthTokens): void {
    const { id: name, url } = this.#server;
    this.#credentials.set(url, { name, client: this.#client, tokens });
  }

  redirectToAuthorization(url: URL): void {
    if (!isPrivate(url)) throw failed(`its login page is not https: ${plainText(url.origin, 200)}`);
    this.#open(url.href);
  }

  saveCodeVerifier(verifier: string): void {
    this.#verifier = verifier;
  }

  codeVerifier(): string {
    return this.#verifier;
  }
}

/** A page on this machine alone, which the browser is sent to. */
class Callback {
  readonly url: string;
  /** Whoever does not know it did not come from the login that was begun here. */
  readonly state = randomBytes(24).toString("base64url");
  readonly #server: Server;
  readonly #code: Promise<string>;
  #settle = (_code: string | FermataError): void => {};

  static async listen(port: number): Promise<Callback> {
    const server = createServer();
    await new Promise<void>((resolve, reject) => {
      server.once("error", reject);
      server.listen(port, "127.0.0.1", resolve);
    }).catch((error: unknown) => {
      throw failed(`port ${port} of this machine is not free (${describeError(error)})`);
    });
    return new Callback(server);
  }

  private constructor(server: Server) {
    this.#server = server;
    this.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}${callbackPath}`;
    this.#code = new Promise((resolve, reject) => {
      this.#settle = (code) => (typeof code === "string" ? resolve(code) : reject(code));
    });
    this.#code.catch(() => {});
    server.on("request", (request, response) => this.#answer(request.url ?? "", response));
  }

  /** @throws FermataError mcp_login_failed | the reason of `signal` */
  async code(signal: AbortSignal): Promise<string> {
    const stopped = new Promise<never>((_resolve, reject) => {
      const stop = (): void => reject(signal.reason as Error);
      if (signal.aborted) stop();
      signal.addEventListener("abort", stop, { once: true });
    });
    return await Promise.race([this.#code, stopped]);
  }

  close(): void {
    this.#server.close();
    this.#server.closeIdleConnections();
  }

  #answer(path: string, response: ServerResponse): void {
    const say = (status: number, text: string): void => {
      response.writeHead(status, {
        "content-type": "text/plain; charset=utf-8",
        connection: "close",
      });
      response.end(`${text}\n`);
    };
    const { pathname, searchParams } = new URL(path, this.url);
    if (pathname !== callbackPath) return say(404, "Nothing is here.");
    // Any page may send a browser here: the login goes on.
    if (searchParams.get("state") !== this.state)
      return say(400, "This is not the login that was begun.");
    const error = searchParams.get("error");
    const code = searchParams.get("code");
    if (error === null && code !== null) {
      say(200, "You are logged in. This page may be closed.");
      return this.#settle(code);
    }
    const reason = plainText(searchParams.get("error_description") ?? error ?? "no code", 300);
    say(400, "The login failed. The terminal says why.");
    this.#settle(failed(reason));
  }
}

/** Nobody reads it on the way. */
function isPrivate({ protocol, hostname }: URL): boolean {
  return protocol === "https:" || /^(localhost|127\.\d+\.\d+\.\d+|\[::1\])$/.test(hostname);
}

async function told<Value>(work: Promise<Value>): Promise<Value> {
  try {
    return await work;
  } catch (error) {
    const isTold = error instanceof FermataError && error.code === "mcp_login_failed";
    throw isTold ? error : failed(describeError(error), error);
  }
}

function failed(reason: string, cause?: unknown): FermataError {
  return new FermataError("mcp_login_failed", `The login failed: ${reason}.`, { cause });
}
