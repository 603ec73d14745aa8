// A fake of a company's MCP server with its authorization server: the SDK's router and demo provider, with refresh
// tokens that are good once. Whoever opens the login page is logged in.
import { randomUUID } from "node:crypto";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { DemoInMemoryAuthProvider } from "@modelcontextprotocol/sdk/examples/server/demoInMemoryOAuthProvider.js";
import {
  InvalidGrantError,
  InvalidTokenError,
} from "@modelcontextprotocol/sdk/server/auth/errors.js";
import { requireBearerAuth } from "@modelcontextprotocol/sdk/server/auth/middleware/bearerAuth.js";
import {
  createOAuthMetadata,
  getOAuthProtectedResourceMetadataUrl,
  mcpAuthMetadataRouter,
  mcpAuthRouter,
} from "@modelcontextprotocol/sdk/server/auth/router.js";
import { createMcpExpressApp } from "@modelcontextprotocol/sdk/server/express.js";
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import type { OAuthTokens } from "@modelcontextprotocol/sdk/shared/auth.js";
import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js";

class FakeProvider extends DemoInMemoryAuthProvider {
  readonly refreshTokens = new Map<string, string>();
  /** Access tokens that count. */
  readonly good = new Set<string>();
  refreshes = 0;

  override async exchangeAuthorizationCode(
    ...given: Parameters<DemoInMemoryAuthProvider["exchangeAuthorizationCode"]>
  ): Promise<OAuthTokens> {
    const tokens = await super.exchangeAuthorizationCode(...given);
    return this.#issue(given[0].client_id, tokens.access_token);
  }

  override async exchangeRefreshToken(
    client: { client_id: string },
    refreshToken: string,
  ): Promise<OAuthTokens> {
    this.refreshes += 1;
    if (this.refreshTokens.get(refreshToken) !== client.client_id)
      throw new InvalidGrantError("The refresh token is not known.");
    this.refreshTokens.delete(refreshToken);
    return this.#issue(client.client_id, randomUUID());
  }

  override async verifyAccessToken(token: string) {
    if (!this.good.has(token)) throw new InvalidTokenError("The token is not known.");
    const expiresAt = Math.floor(Date.now() / 1000) + 3600;
    return { token, clientId: "any", scopes: [], expiresAt };
  }

  #issue(clientId: string, access: string): OAuthTokens {
    const refresh = randomUUID();
    this.refreshTokens.set(refresh, clientId);
    this.good.add(access);
    return {
      access_token: access,
      token_type: "bearer",
      expires_in: 3600,
      refresh_token: refresh,
    };
  }
}

export interface FakeAuthorization {
  /** Of the MCP server. */
  url: string;
  readonly refreshes: number;
  /** Headers of requests to the endpoint for tokens. */
  readonly tokenHeaders: Record<string, unknown>[];
  /** Access tokens end; refresh tokens, too, if `all`. */
  revoke(all: boolean): void;
  close(): Promise<void>;
}

async function listen(): Promise<{ http: Server; origin: string }> {
  const http = createServer();
  await new Promise<void>((resolve) => http.listen(0, "127.0.0.1", resolve));
  return { http, origin: `http://127.0.0.1:${(http.address() as AddressInfo).port}` };
}

/** Two servers, as they are two companies' often. */
export async function startFakeAuthorization(): Promise<FakeAuthorization> {
  const [hub, authority] = await Promise.all([listen(), listen()]);
  const resource = new URL(`${hub.origin}/mcp`);
  const issuerUrl = new URL(authority.origin);
  const provider = new FakeProvider();
  const tokenHeaders: Record<string, unknown>[] = [];

  const authorityApp = createMcpExpressApp();
  authorityApp.use(
    "/token",
    (request: IncomingMessage, _response: ServerResponse, next: () => void) => {
      tokenHeaders.push({ ...request.headers });
      next();
    },
  );
  authorityApp.use(mcpAuthRouter({ provider, issuerUrl }));
  authority.http.on("request", authorityApp);

  const hubApp = createMcpExpressApp();
  const oauthMetadata = createOAuthMetadata({ provider, issuerUrl });
  const scopesSupported = ["everything"];
  hubApp.use(
    mcpAuthMetadataRouter({ oauthMetadata, resourceServerUrl: resource, scopesSupported }),
  );
  const resourceMetadataUrl = getOAuthProtectedResourceMetadataUrl(resource);
  hubApp.post(
    "/mcp",
    requireBearerAuth({ verifier: provider, resourceMetadataUrl }),
    async (request: IncomingMessage & { body?: unknown }, response: ServerResponse) => {
      const server = new McpServer({ name: "hub", version: "1" });
      server.registerTool("whoami", {}, async () => ({
        content: [{ type: "text", text: `known as ${String(request.headers["x-team"])}` }],
      }));
      const transport = new StreamableHTTPServerTransport({});
      await server.connect(transport as Transport);
      await transport.handleRequest(request, response, request.body);
    },
  );
  hub.http.on("request", hubApp);
  return {
    url: resource.href,
    get refreshes() {
      return provider.refreshes;
    },
    tokenHeaders,
    revoke(all) {
      provider.good.clear();
      if (all) provider.refreshTokens.clear();
    },
    close: async () => {
      for (const { http } of [hub, authority]) {
        http.closeAllConnections();
        await new Promise((resolve) => http.close(resolve));
      }
    },
  };
}
