/** The HTTP server, built and not yet listening. */

import { addressOf, type BareRoute, type Route } from "./route.ts";
import Fastify, { LogController, type FastifyInstance } from "fastify";
import { ApiKeys } from "./http/api-keys.ts";
import { randomBytes } from "node:crypto";
import { FermataError } from "../errors.ts";
import { HistoryGaps } from "./http/history-gaps.ts";
import { Metrics } from "./metrics.ts";
import { OnceWarnings } from "./body/warnings.ts";
import {
  installAccessLog,
  createRequestId,
  installReplicaName,
  installRequestId,
  installActiveRequests,
} from "./http/requests.ts";
import { installAuthentication, installCors, installHostNames } from "./http/access.ts";
import {
  answerBrokenRequest,
  installConnectionLimit,
  maxHeaderSize,
} from "./http/broken-requests.ts";
import { installConnectionReports } from "./http/connection-reports.ts";
import { installErrorHandler, sendError, toFermataError } from "./http/error-replies.ts";
import {
  defaultBodyBytes,
  installBodyBudget,
  installJsonBody,
  installUnreadBodies,
} from "./http/json-body.ts";
import { installQuarantine } from "./http/quarantine.ts";
import {
  documentedPath,
  installNotFound,
  RoutePaths,
  installSingleQuery,
} from "./http/route-paths.ts";
import { SealedTokens } from "./http/sealed-tokens.ts";
import { chatCompletionsRoute, chatInputTokensRoute } from "./chat-completions/route.ts";
import { storedCompletionRoutes } from "./chat-completions/stored-routes.ts";
import { completionsRoute } from "./completions/route.ts";
import { tokenRoutes } from "./tokens/routes.ts";
import { embeddingsRoute, nativeEmbeddingRoute } from "./embeddings/route.ts";
import { healthRoute, metricsRoute, readyRoute } from "./about/health.ts";
import { mcpRoute } from "./mcp/route.ts";
import { messagesCountTokensRoute, messagesRoute } from "./messages/route.ts";
import { loadRoutes } from "./about/loading.ts";
import { modelRoute, modelsRoute } from "./about/models.ts";
import { engineStates } from "./answer/model-use.ts";
import type { RouteContext } from "./context.ts";
import { modelRoutes } from "./model-routes.ts";
import { embedRoutes } from "./ollama/embed.ts";
import { ollamaModelRoutes } from "./ollama/models.ts";
import { ollamaRoutes } from "./ollama/routes.ts";
import { nativeCompletionRoutes } from "./completions/native-route.ts";
import { openApiRoute } from "./http/openapi.ts";
import { rerankRoutes, scoreRoute } from "./rerank/route.ts";
import { noPageRoute, pageRoutes } from "./about/page.ts";
import { installResponses, responsesRoutes, storedResponsesRoutes } from "./responses/routes.ts";
import { propsRoute, slotsRoute } from "./about/props.ts";
import { installWebSockets } from "./http/web-sockets.ts";
import type { ServerConfig, ServerServices } from "./services.ts";
import { Traces, answerOfNobody } from "./answer/traces.ts";
import { SqliteStore } from "../store/sqlite/sqlite-store.ts";
import { ConversationService } from "./conversations/service.ts";
import { EngineMeter, engineRoute, engineStreamRoute } from "./about/engine.ts";
import { approvalRoutes } from "./conversations/approvals.ts";
import { branchedConversationRoutes } from "./conversations/routes.ts";
import { takeOverLeft } from "./answer/shared-runs.ts";
import { closeSessionRoute, openSessionRoute, streamTokensRoute } from "./session/routes.ts";
import { traceRoutes } from "./about/traces.ts";
import { toolsRoute } from "./about/tools.ts";

/** Longer than any id that a path may hold. */
const maxParamLength = 256;
/** For a request to arrive as a whole; its answer may take as long as it takes. */
const receiveTimeoutMs = 5 * 60_000;
const allMethods = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"] as const;

/** Closing it cancels what runs. The services are the caller's to close, afterwards. */
export function buildServer(services: ServerServices, config: ServerConfig): FastifyInstance {
  const paths = new RoutePaths();
  const app = Fastify({
    ...(config.logger === undefined ? { logger: false } : { loggerInstance: config.logger }),
    bodyLimit: config.maxBodyBytes ?? defaultBodyBytes,
    // Its limit holds for hooks as well, and one of them is the drain, which may take longer than 10 seconds.
    pluginTimeout: 0,
    genReqId: createRequestId,
    rewriteUrl: paths.canonical,
    // The access log tells of them.
    logController: new LogController({ disableRequestLogging: true }),
    routerOptions: { maxParamLength },
    // Requests that come while it closes are refused by a hook, in the API's own error shape.
    return503OnClosing: false,
    http: { maxHeaderSize },
    requestTimeout: receiveTimeoutMs,
    clientErrorHandler: answerBrokenRequest,
    frameworkErrors: (error, request, reply) => sendError(toFermataError(error), request, reply),
  });
  installConnectionLimit(app, config.maxConnections);
  installWebSockets(app);
  installJsonBody(app);
  installBodyBudget(app, config.unfinishedBodyBytes);
  installUnreadBodies(app);

  const metrics = new Metrics(services);
  app.decorate("othersWait", () => othersWait(services));
  installRequestId(app);
  installReplicaName(app, config.replica);
  installErrorHandler(app);
  installQuarantine(app, config.crashes ?? new Map());
  installConnectionReports(app, config.connectionReports ?? null);
  installAccessLog(app);
  const origins = config.corsOrigins ?? [];
  const keys = config.apiKeys instanceof ApiKeys ? config.apiKeys : ApiKeys.of(config.apiKeys);
  installHostNames(app, keys, origins);
  installCors(app, origins);
  const active = installActiveRequests(app, config);
  const tokens = new SealedTokens(config.tokenSecret ?? randomBytes(32));
  installAuthentication(app, keys, tokens);
  installNotFound(app, paths);
  installSingleQuery(app);
  countRequests(app, metrics);

  const warnings = new OnceWarnings((fields, message) => app.log.warn(fields, message));
  const gaps = new HistoryGaps();
  const traces = new Traces();
  const context = { services, config, keys, metrics, active, warnings, gaps, traces };
  const responses = { ...context, responses: installResponses(app, context) };
  const one = (make: (context: RouteContext) => Route): Route[] =>
    modelRoutes(context, (own) => [make(own)]);
  const routes: Route[] = [
    ...one(chatCompletionsRoute),
    ...one(messagesRoute),
    ...one(messagesCountTokensRoute),
    ...modelRoutes(responses, responsesRoutes),
    ...storedResponsesRoutes(responses),
    ...apiRoutes(app, context, tokens),
    ...one(chatInputTokensRoute),
    ...storedCompletionRoutes(context),
    ...one(completionsRoute),
    ...modelRoutes(context, nativeCompletionRoutes),
    embeddingsRoute(context),
    nativeEmbeddingRoute(context),
    ...rerankRoutes(context),
    scoreRoute(context),
    ...modelRoutes(context, tokenRoutes),
    ...modelRoutes(context, ollamaRoutes),
    ...ollamaModelRoutes(services),
    ...embedRoutes(context),
    modelsRoute(services),
    modelRoute(services),
    ...loadRoutes(context),
    ...one(propsRoute),
    ...one(slotsRoute),
    healthRoute(services, config),
    readyRoute(services, config, active),
    metricsRoute(metrics),
  ];
  const api = [...routes, openApiRoute(routes), mcpRoute(context)];
  paths.set(api.map((route) => addressOf(route).url));
  const all = [...api, ...(config.page ? pageRoutes(config.page) : [noPageRoute()])];
  for (const route of all) app.route({ ...route, ...addressOf(route) });
  refuseOtherMethods(app, all);
  return app;
}

/** True of an engine that is closed: nobody is waited for any more. */
function othersWait(services: ServerServices): boolean {
  try {
    return engineStates(services).some(({ waiting }) => waiting > 0);
  } catch {
    return true;
  }
}

function countRequests(app: FastifyInstance, metrics: Metrics): void {
  app.addHook("onResponse", async (request, reply) => {
    const endpoint = request.routeOptions.url ?? "unknown";
    metrics.requests.inc({ endpoint, status: String(reply.raw.statusCode) });
  });
}

/** Before the body is read: what it holds does not matter. */
function refuseOtherMethods(app: FastifyInstance, routes: readonly BareRoute[]): void {
  for (const url of new Set(routes.map((route) => addressOf(route).url))) {
    const same = routes.filter((route) => addressOf(route).url === url);
    const told: string[] = same.map((route) => addressOf(route).method);
    // Fastify answers HEAD where there is GET.
    const allowed = told.includes("GET") ? [...told, "HEAD"] : told;
    app.route({
      config: same[0]?.config ?? {},
      method: allMethods.filter((method) => !allowed.includes(method)),
      url,
      onRequest: async (request, reply) => {
        reply.header("allow", allowed.join(", "));
        throw new FermataError(
          "method_not_allowed",
          `${documentedPath(url)} takes ${told.join(" and ")}, not ${request.method}.`,
        );
      },
      handler: async () => {},
    });
  }
}

/** Of conversations that are kept in memory. The oldest ones go first. */
const memoryLimits = { maxBytes: 256 * 1024 ** 2 };

function apiRoutes(app: FastifyInstance, context: RouteContext, tokens: SealedTokens): Route[] {
  const { services, config } = context;
  const branches = services.branches ?? new SqliteStore(null, { limits: memoryLimits }).branches;
  const shared = services.store?.shared ?? null;
  const { replica } = config;
  const conversations = new ConversationService(branches, services.model.id, { replica, shared });
  const answer = answerOfNobody("/api/conversations/:id/runs");
  takeOverLeft(app, {
    shared,
    take: () => conversations.adopt({ ...context, answer, log: app.log, startedAt: 0 }),
    cancel: (id, reason) => conversations.cancelHere(id, reason),
  });
  const all = { ...context, conversations };
  const meter = new EngineMeter(services);
  return [
    ...branchedConversationRoutes(all),
    toolsRoute(services, config),
    ...approvalRoutes(context),
    engineRoute(meter),
    engineStreamRoute(meter, context),
    ...traceRoutes(context.traces),
    openSessionRoute(tokens),
    closeSessionRoute(),
    streamTokensRoute(tokens),
  ];
}
