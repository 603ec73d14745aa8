// An MCP server and its authorization server in one, by hand: it asks for logins where a test says so. Whoever opens the
// login page is logged in, and the access token tells the scopes.
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

export interface LoginServer {
  /** Of the MCP server. */
  url: string;
  /** The scope that somebody needs for a method, or for a tool by its name. Not there: anybody may. */
  needs: Record<string, string>;
  /** What it adds to its demand for a login. */
  demand: string;
  /** It does not tell where one logs in. */
  isSilent: boolean;
  /** Of the authorization server, beside what every one has. */
  metadata: object;
  /** Of the MCP server as what one logs in for, in the same way. */
  resource: object;
  /** Methods that get no answer, and who hears that one came. */
  unanswered: Record<string, () => void>;
  /** Of the authorization server: what is answered with an error, and with which. */
  refuses: Partial<Record<"register" | "authorize" | "token", string>>;
  /** With which it names itself when it sends the browser back. */
  issuer: string | null;
  /** What came to `register`, `authorize` and `token`. */
  readonly seen: { register: object[]; authorize: URLSearchParams[]; token: URLSearchParams[] };
  close(): Promise<void>;
}

export async function startLoginServer(): Promise<LoginServer> {
  const http = createServer((request, response) => {
    let text = "";
    request.on("data", (chunk) => (text += String(chunk)));
    request.on("end", () => answer(request, text, response));
  });
  await new Promise<void>((resolve) => http.listen(0, "127.0.0.1", resolve));
  const origin = `http://127.0.0.1:${(http.address() as AddressInfo).port}`;
  const self: LoginServer = {
    url: `${origin}/mcp`,
    needs: {},
    demand: "",
    isSilent: false,
    metadata: {},
    resource: {},
    unanswered: {},
    refuses: {},
    issuer: null,
    seen: { register: [], authorize: [], token: [] },
    async close() {
      http.closeAllConnections();
      await new Promise((resolve) => http.close(resolve));
    },
  };

  function answer(request: IncomingMessage, text: string, response: ServerResponse): void {
    const { pathname, searchParams } = new URL(request.url!, origin);
    const error = self.refuses[pathname.slice(1) as "register" | "token"];
    if (error !== undefined && request.method === "POST") {
      response.statusCode = 400;
      return json(response, { error });
    }
    switch (pathname) {
      case "/.well-known/oauth-protected-resource/mcp":
        if (self.isSilent) break;
        return json(response, {
          resource: self.url,
          authorization_servers: [origin],
          ...self.resource,
        });
      case "/.well-known/oauth-authorization-server":
        return json(response, {
          issuer: origin,
          authorization_endpoint: `${origin}/authorize`,
          token_endpoint: `${origin}/token`,
          registration_endpoint: `${origin}/register`,
          response_types_supported: ["code"],
          code_challenge_methods_supported: ["S256"],
          ...self.metadata,
        });
      case "/register": {
        const client = JSON.parse(text) as object;
        self.seen.register.push(client);
        return json(response, { ...client, client_id: "it", client_secret: "its secret" });
      }
      case "/authorize": {
        self.seen.authorize.push(searchParams);
        const back = new URL(searchParams.get("redirect_uri")!);
        back.searchParams.set("state", searchParams.get("state")!);
        if (self.refuses.authorize !== undefined)
          back.searchParams.set("error", self.refuses.authorize);
        else back.searchParams.set("code", tokenOf(searchParams.get("scope") ?? ""));
        if (self.issuer !== null) back.searchParams.set("iss", self.issuer);
        return void response.writeHead(302, { location: back.href }).end();
      }
      case "/token": {
        const given = new URLSearchParams(text);
        self.seen.token.push(given);
        const code = given.get("code") ?? tokenOf("see");
        const tokens = { access_token: code, refresh_token: "again" };
        return json(response, { ...tokens, token_type: "Bearer", expires_in: 3600 });
      }
      case "/mcp":
        if (request.method === "POST") return answerMcp(request, text, response);
    }
    response.writeHead(404).end();
  }

  function answerMcp(request: IncomingMessage, text: string, response: ServerResponse): void {
    const { id, method, params } = JSON.parse(text);
    const unanswered = self.unanswered[method];
    if (unanswered !== undefined) return unanswered();
    const need = self.needs[method] ?? self.needs[params?.name];
    const token = /^Bearer (.+)$/.exec(request.headers.authorization ?? "")?.[1];
    const isKnown = token !== undefined && token !== "ended";
    const has = isKnown ? scopesOf(token) : [];
    if (need !== undefined && !need.split(" ").every((scope) => has.includes(scope))) {
      const error = isKnown ? ', error="insufficient_scope"' : "";
      response.setHeader("www-authenticate", `Bearer scope="${need}"${error}${self.demand}`);
      return void response.writeHead(isKnown ? 403 : 401).end();
    }
    if (id === undefined) return void response.writeHead(202).end();
    json(response, { jsonrpc: "2.0", id, result: resultOf(method, params) });
  }

  return self;
}

function resultOf(method: string, params: { name: string; protocolVersion: string }): object {
  if (method === "initialize") {
    const serverInfo = { name: "by hand", version: "1" };
    const { protocolVersion } = params;
    return { protocolVersion, serverInfo, capabilities: { tools: {} } };
  }
  if (method === "tools/call") return { content: [{ type: "text", text: `${params.name} ran` }] };
  return { tools: ["read", "write"].map((name) => ({ name, inputSchema: { type: "object" } })) };
}

const tokenOf = (scopes: string): string => `t${Buffer.from(scopes).toString("base64url")}`;
const scopesOf = (token: string): string[] =>
  Buffer.from(token.slice(1), "base64url").toString().split(" ");

function json(response: ServerResponse, body: object): void {
  response.setHeader("content-type", "application/json").end(JSON.stringify(body));
}
