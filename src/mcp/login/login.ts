/** A person's login at a remote MCP server: PKCE, and a callback on this machine whose state is checked. */

import { randomBytes } from "node:crypto";
import { createServer, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import {
  auth,
  discoverOAuthProtectedResourceMetadata,
  discoverOAuthServerInfo,
  extractWWWAuthenticateParams,
  type OAuthClientProvider,
  type OAuthServerInfo,
} from "@modelcontextprotocol/sdk/client/auth.js";
import type {
  OAuthClientInformationMixed,
  OAuthClientMetadata,
  OAuthTokens,
} from "@modelcontextprotocol/sdk/shared/auth.js";
import type { FetchLike } from "@modelcontextprotocol/sdk/shared/transport.js";
import { FermataError } from "../../errors.ts";
import { abortionOf } from "../../waits.ts";
import { boundedFetch } from "../transport/bounded-fetch.ts";
import type { McpCredentials } from "./credentials.ts";
import { distrustOf, isPrivate, readable, withoutPkce } from "./login-checks.ts";
import { clientMetadata, configuredClient, joinScopes } from "./stored-login.ts";
import { McpSession } from "../session.ts";
import type { McpAddress, McpServerConfig, OAuthServer } from "../settings.ts";
import { describeError, plainText } from "../text.ts";

interface LoginOptions {
  version: string;
  /** Shows the page where the person logs in. */
  open(url: string): void;
  signal: AbortSignal;
}

const callbackPath = "/callback";
const maxBytes = 1024 ** 2;
const boundFetch = boundedFetch(fetch, maxBytes);
/** For the server to say that it wants a login. */
const demandMs = 20_000;
/** OpenID Connect's scope for a refresh token. */
const staying = "offline_access";

/** @throws FermataError mcp_login_failed | the reason of `signal` */
export async function login(
  server: McpServerConfig & McpAddress,
  credentials: McpCredentials,
  { version, open, signal }: LoginOptions,
): Promise<void> {
  const { url, oauth } = server;
  if (!isPrivate(url, url))
    throw failed("the server's url must be https: a token would be readable on the way");
  const { resourceMetadataUrl, scope: demanded } = await demandOf(server, version, signal);
  // Whoever reads it on the way could name an authorization server of their own.
  if (resourceMetadataUrl !== undefined && !isPrivate(resourceMetadataUrl, url))
    throw failed(readable("resource_metadata", resourceMetadataUrl));
  const found = await told(
    discoverOAuthServerInfo(url, {
      fetchFn: boundFetch,
      ...(resourceMetadataUrl !== undefined && { resourceMetadataUrl }),
    }),
  );
  const distrust = distrustOf(server, found) ?? withoutPkce(server, found);
  if (distrust !== null) throw failed(distrust);
  const callback = await Callback.listen(oauth?.callbackPort ?? 0, found);
  const lacking = credentials.find(url)?.lacking;
  try {
    const provider = new PersonLogin({ server, credentials, callback, found, open });
    const scope = scopeOf({ server, demanded, lacking, found });
    const options = { serverUrl: url, fetchFn: boundFetch, ...(scope !== undefined && { scope }) };
    await told(auth(provider, options));
    const authorizationCode = await callback.code(signal);
    await told(auth(provider, { ...options, authorizationCode }));
  } catch (error) {
    if (!isRefusedScope(error) || lacking === undefined || oauth?.scope !== undefined) throw error;
    const way = `fermata mcp logout ${server.id} forgets it`;
    const message = `${error.message} Calls asked for the scope "${plainText(lacking, 200)}"; ${way}.`;
    throw new FermataError("mcp_login_failed", message, { cause: error });
  } finally {
    callback.close();
  }
}

interface Demand {
  resourceMetadataUrl?: URL | undefined;
  scope?: string | undefined;
}

/**
 * What the server says of the login that it wants: at the handshake, or when its tools are listed. One that lists them to
 * anybody may want it for some of its calls, and then says where one logs in.
 * @throws FermataError: it wants none, or does not answer | the reason of `signal`
 */
async function demandOf(
  server: McpServerConfig & McpAddress,
  version: string,
  signal: AbortSignal,
): Promise<Demand> {
  const demands: Response[] = [];
  const watched: FetchLike = async (target, init) => {
    const response = await fetch(target, init);
    if (response.status === 401) demands.push(response);
    return response;
  };
  const fault = await faultOf(server, { version, signal, fetch: watched });
  signal.throwIfAborted();
  const [demand] = demands;
  if (demand !== undefined) return extractWWWAuthenticateParams(demand);
  if (fault !== null) throw failed(describeError(fault), fault);
  const offer = discoverOAuthProtectedResourceMetadata(server.url, {}, boundFetch);
  if ((await offer.catch(() => null)) === null) throw failed("it asks for no login");
  return {};
}

/** Why the server cannot be used by somebody who is not logged in. Null: it can. */
async function faultOf(
  server: McpServerConfig,
  given: { version: string; signal: AbortSignal; fetch: FetchLike },
): Promise<unknown> {
  const nothing = (): void => {};
  try {
    const session = await McpSession.open(server, {
      ...given,
      model: "fermata",
      connectTimeoutMs: demandMs,
      maxMessageBytes: 16 * maxBytes,
      onStandardError: nothing,
      onComplaint: nothing,
      onToolsChanged: nothing,
      onBreak: nothing,
      onNote: nothing,
      onLost: nothing,
    });
    await session.listTools(given.signal).finally(() => session.close());
    return null;
  } catch (error) {
    return error;
  }
}

/**
 * What the server names and what calls lacked; the operator's word counts before both. A client that registers itself asks
 * to stay logged in too, where the authorization server has a scope for it: nobody is there when the access token ends.
 */
function scopeOf({
  server: { oauth = {} },
  demanded,
  lacking,
  found: { resourceMetadata, authorizationServerMetadata },
}: {
  server: OAuthServer;
  demanded: string | undefined;
  lacking: string | undefined;
  found: OAuthServerInfo;
}): string | undefined {
  if (oauth.scope !== undefined) return oauth.scope;
  const scope = joinScopes(demanded ?? resourceMetadata?.scopes_supported?.join(" "), lacking);
  if (scope === undefined || oauth.clientId !== undefined) return scope;
  const known = authorizationServerMetadata?.scopes_supported ?? [];
  return joinScopes(scope, known.includes(staying) ? staying : undefined);
}

interface PersonLoginOptions {
  server: OAuthServer;
  credentials: McpCredentials;
  callback: Callback;
  found: OAuthServerInfo;
  /** Shows the page where the person logs in. */
  open(url: string): void;
}

/** The client is registered at each login: the port of its callback is another one. */
class PersonLogin implements OAuthClientProvider {
  readonly #given: PersonLoginOptions;
  #client: OAuthClientInformationMixed | undefined;
  #verifier = "";

  constructor(given: PersonLoginOptions) {
    this.#given = given;
    this.#client = configuredClient(given.server.oauth);
  }

  /** Both steps of the login are at the same authorization server. */
  discoveryState(): OAuthServerInfo {
    return this.#given.found;
  }

  get redirectUrl(): string {
    return this.#given.callback.url;
  }

  get clientMetadata(): OAuthClientMetadata {
    const { server, found } = this.#given;
    const methods = found.authorizationServerMetadata?.token_endpoint_auth_methods_supported;
    return clientMetadata(server, this.redirectUrl, methods);
  }

  state(): string {
    return this.#given.callback.state;
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
    const { server, credentials } = this.#given;
    const { id: name, url } = server;
    const lacking = credentials.find(url)?.lacking;
    credentials.set(url, { name, client: this.#client, tokens, lacking });
  }

  redirectToAuthorization(url: URL): void {
    this.#given.open(url.href);
  }

  saveCodeVerifier(verifier: string): void {
    this.#verifier = verifier;
  }

  codeVerifier(): string {
    return this.#verifier;
  }
}

/** The SDK's type of the metadata has no second one. */
interface IssuerMetadata {
  issuer?: string;
  authorization_response_iss_parameter_supported?: unknown;
}

/** A page on this machine alone, which the browser is sent to. */
class Callback {
  readonly url: string;
  /** Whoever does not know it did not come from the login that was begun here. */
  readonly state = randomBytes(24).toString("base64url");
  readonly #server: Server;
  readonly #found: OAuthServerInfo;
  readonly #code: Promise<string>;
  #settle = (_code: string | FermataError): void => {};

  static async listen(port: number, found: OAuthServerInfo): Promise<Callback> {
    const server = createServer();
    await new Promise<void>((resolve, reject) => {
      server.once("error", reject);
      server.listen(port, "127.0.0.1", resolve);
    }).catch((error: unknown) => {
      throw failed(`port ${port} of this machine is not free (${describeError(error)})`);
    });
    return new Callback(server, found);
  }

  private constructor(server: Server, found: OAuthServerInfo) {
    this.#server = server;
    this.#found = found;
    this.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}${callbackPath}`;
    this.#code = new Promise((resolve, reject) => {
      this.#settle = (code) => (typeof code === "string" ? resolve(code) : reject(code));
    });
    this.#code.catch(() => {});
    server.on("request", (request, response) => this.#answer(request.url ?? "", response));
  }

  /** @throws FermataError mcp_login_failed | the reason of `signal` */
  async code(signal: AbortSignal): Promise<string> {
    const stopped = abortionOf(signal).then(() => Promise.reject(signal.reason as Error));
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
    const url = URL.canParse(path, this.url) ? new URL(path, this.url) : null;
    if (url?.pathname !== callbackPath) return say(404, "Nothing is here.");
    const { searchParams } = url;
    // Any page may send a browser here: the login goes on.
    if (searchParams.get("state") !== this.state)
      return say(400, "This is not the login that was begun.");
    if (!this.#isIssuer(searchParams.get("iss"))) {
      say(400, "The login failed. The terminal says why.");
      return this.#settle(failed("the answer is not from the authorization server that was asked"));
    }
    const error = searchParams.get("error");
    const code = searchParams.get("code");
    if (error === null && code !== null) {
      say(200, "You are logged in. This page may be closed.");
      return this.#settle(code);
    }
    const reason = plainText(searchParams.get("error_description") ?? error ?? "no code", 300);
    say(400, "The login failed. The terminal says why.");
    this.#settle(failed(reason, { errorCode: error }));
  }

  /** RFC 9207: a code of another authorization server must not be sent to this one. */
  #isIssuer(name: string | null): boolean {
    const { issuer, authorization_response_iss_parameter_supported: isPromised }: IssuerMetadata =
      this.#found.authorizationServerMetadata ?? {};
    return name === null ? isPromised !== true : issuer === undefined || name === issuer;
  }
}

function isRefusedScope(error: unknown): error is FermataError {
  return error instanceof FermataError && codeOf(error.cause) === "invalid_scope";
}

/** OAuth's, as the SDK's errors have it. */
function codeOf(error: unknown): string {
  const { errorCode } = (error ?? {}) as { errorCode?: unknown };
  return typeof errorCode === "string" ? errorCode : "";
}

async function told<Value>(work: Promise<Value>): Promise<Value> {
  try {
    return await work;
  } catch (error) {
    const isTold = error instanceof FermataError && error.code === "mcp_login_failed";
    // Many authorization servers send a code alone.
    throw isTold ? error : failed(describeError(error) || codeOf(error), error);
  }
}

function failed(reason: string, cause?: unknown): FermataError {
  return new FermataError("mcp_login_failed", `The login failed: ${reason}.`, { cause });
}
