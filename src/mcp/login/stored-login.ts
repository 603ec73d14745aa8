/** OAuth for remote MCP servers: a server uses and refreshes what a login gave, and never asks for one by itself. */

import {
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
import type { McpCredentials, McpLogin } from "./credentials.ts";
import { distrustOf, isSameIssuer } from "./login-checks.ts";
import type { McpOAuth, OAuthServer } from "../settings.ts";
import { plainText } from "../text.ts";

/** A client whom the operator registered is not registered again. */
export function configuredClient(oauth: McpOAuth = {}): OAuthClientInformationMixed | undefined {
  const { clientId, clientSecret } = oauth;
  if (clientId === undefined) return undefined;
  return {
    client_id: clientId,
    ...(clientSecret !== undefined && { client_secret: clientSecret }),
  };
}

/** @param methods in which the authorization server lets a client prove who it is. Default: not known */
export function clientMetadata(
  { oauth }: OAuthServer,
  redirectUrl: string,
  methods: readonly string[] = ["none"],
): OAuthClientMetadata & { application_type: string } {
  const known = ["none", "client_secret_basic", "client_secret_post"];
  return {
    client_name: "Fermata",
    // OpenID Connect's default, a web application, may not come back to an address of this machine.
    application_type: "native",
    redirect_uris: [redirectUrl],
    grant_types: ["authorization_code", "refresh_token"],
    response_types: ["code"],
    token_endpoint_auth_method: known.find((method) => methods.includes(method)) ?? "none",
    ...(oauth?.scope === undefined ? {} : { scope: oauth.scope }),
  };
}

export function needsLogin(id: string): FermataError {
  const message = `it asks for a login. Run: fermata mcp login ${id}`;
  return new FermataError("mcp_start_failed", message);
}

/** All of them, each once. Undefined: none. */
export function joinScopes(...scopes: (string | undefined)[]): string | undefined {
  const names = scopes.flatMap((scope = "") => scope.split(" ")).filter((name) => name !== "");
  return names.length === 0 ? undefined : [...new Set(names)].join(" ");
}

/** Characters. A login page's address holds them all. */
const maxScopeLength = 2000;

/**
 * What a request needs beyond the scopes of the login is kept for the next one, and the request says so. The SDK would
 * ask for a token with the same scopes, and take the second refusal for the server's last word.
 */
export function withScopes(
  inner: FetchLike,
  { id, url, oauth }: OAuthServer,
  credentials: McpCredentials,
): FetchLike {
  return async (target, init) => {
    const response = await inner(target, init);
    if (response.status !== 403) return response;
    const { error, scope } = extractWWWAuthenticateParams(response);
    const login = credentials.find(url);
    if (error !== "insufficient_scope" || login === undefined) return response;
    const lacking = joinScopes(login.lacking, scope);
    const isTooLong = lacking !== undefined && lacking.length > maxScopeLength;
    // Another call may write a token of its own as soon as anything is awaited.
    if (lacking !== login.lacking && !isTooLong) credentials.set(url, { ...login, lacking });
    await response.body?.cancel();
    const what = scope === undefined ? "more scopes" : `the scope "${plainText(scope, 100)}"`;
    const anew = `Calls have asked for too many. Run fermata mcp logout ${id}, then`;
    const remedy =
      oauth?.scope !== undefined
        ? 'Add it to "scope" in "oauth" of the MCP configuration and run'
        : isTooLong
          ? anew
          : "Run";
    const message = `it asks for a login with ${what}. ${remedy}: fermata mcp login ${id}`;
    throw new FermataError("mcp_start_failed", message);
  };
}

/** Without a person: where a login is needed it throws `needsLogin`. */
export class StoredLogin implements OAuthClientProvider {
  readonly #server: OAuthServer;
  readonly #credentials: McpCredentials;
  /** Another process may have refreshed them since. */
  #given: OAuthTokens | undefined;

  constructor(server: OAuthServer, credentials: McpCredentials) {
    this.#server = server;
    this.#credentials = credentials;
  }

  /** A URL marks the flow as one that a person has begun. */
  get redirectUrl(): string {
    return "http://127.0.0.1/callback";
  }

  get clientMetadata(): OAuthClientMetadata {
    return clientMetadata(this.#server, this.redirectUrl);
  }

  /** It is asked for first: without a login nothing is looked up and no client is registered. */
  discoveryState(): undefined {
    if (this.#login?.tokens === undefined) throw needsLogin(this.#server.id);
  }

  /** It is found anew before tokens are refreshed: the login was at the one that was found then. */
  saveDiscoveryState(found: OAuthServerInfo): void {
    const { client, tokens } = this.#login ?? {};
    const issuer = tokens?.issuer ?? client?.issuer;
    if (issuer !== undefined && !isSameIssuer(issuer, found.authorizationServerUrl))
      throw needsLogin(this.#server.id);
    const distrust = distrustOf(this.#server, found);
    if (distrust !== null) throw new FermataError("mcp_start_failed", distrust);
  }

  clientInformation(): OAuthClientInformationMixed | undefined {
    return this.#login?.client ?? configuredClient(this.#server.oauth);
  }

  /** The login was at another authorization server, or is gone. */
  saveClientInformation(): void {
    throw needsLogin(this.#server.id);
  }

  tokens(): OAuthTokens | undefined {
    this.#given = this.#login?.tokens;
    return this.#given;
  }

  saveTokens(tokens: OAuthTokens): void {
    this.#given = tokens;
    this.#save({ tokens });
  }

  invalidateCredentials(scope: "all" | "client" | "tokens" | "verifier" | "discovery"): void {
    if (scope === "verifier" || scope === "discovery") return;
    const isOurs = this.#login?.tokens?.refresh_token === this.#given?.refresh_token;
    if (isOurs) this.#save({ tokens: undefined });
  }

  redirectToAuthorization(): void {
    throw needsLogin(this.#server.id);
  }

  saveCodeVerifier(): void {}

  codeVerifier(): string {
    throw needsLogin(this.#server.id);
  }

  get #login(): McpLogin | undefined {
    return this.#credentials.find(this.#server.url);
  }

  #save(change: Partial<McpLogin>): void {
    const { id: name, url } = this.#server;
    this.#credentials.set(url, { ...this.#login, name, ...change });
  }
}

/** Within this time all who have learned that an access token has ended have asked for another. */
const sharedMs = 5000;

/**
 * Calls that run side by side learn together that their access token has ended, and a refresh token may be good for one time only.
 * So the first of them sends it, and what it gets is for all: sent again it would be refused, and the login would be lost.
 */
export function refreshedOnce(inner: FetchLike): FetchLike {
  const sent = new Map<string, Promise<WholeAnswer>>();
  return async (url, init) => {
    const token = refreshTokenOf(init?.body);
    if (token === null) return await inner(url, init);
    let answer = sent.get(token);
    if (answer === undefined) {
      answer = wholeAnswer(inner(url, init));
      sent.set(token, answer);
      const forget = (): void => void sent.delete(token);
      // A failure may pass. Some servers give the same refresh token again.
      answer.then(({ status }) => {
        if (status < 400) setTimeout(forget, sharedMs).unref();
        else forget();
      }, forget);
    }
    const { text, ...head } = await answer;
    return new Response(text, head);
  };
}

interface WholeAnswer {
  text: string;
  status: number;
  headers: Headers;
}

async function wholeAnswer(sent: Promise<Response>): Promise<WholeAnswer> {
  const response = await sent;
  const { status, headers } = response;
  return { text: await response.text(), status, headers };
}

function refreshTokenOf(body: unknown): string | null {
  if (!(body instanceof URLSearchParams)) return null;
  return body.get("grant_type") === "refresh_token" ? body.get("refresh_token") : null;
}
