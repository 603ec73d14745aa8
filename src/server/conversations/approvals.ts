import type { RouteOptions } from "fastify";
import type { PendingApproval } from "../../tools/approvals.ts";
import { expectBody, fieldError, readText } from "../body/fields.ts";
import { requestOwner } from "../http/authentication.ts";
import type { ServerServices } from "../services.ts";

const maxReasonLength = 2000;

/** GET /api/approvals: calls that wait for a person. POST /api/approvals/{call_id}: the person's answer. */
export function approvalRoutes({ approvals }: Pick<ServerServices, "approvals">): RouteOptions[] {
  return [
    {
      method: "GET",
      url: "/api/approvals",
      handler: async (request) => ({
        approvals: approvals.pending(requestOwner(request)).map(wireApproval),
      }),
    },
    {
      method: "POST",
      url: "/api/approvals/:call_id",
      handler: async (request, reply) => {
        const { call_id: callId } = request.params as { call_id: string };
        const { decision, reason } = parseDecision(request.body);
        approvals.decide(requestOwner(request), callId, decision, reason);
        return await reply.send({ call_id: callId, decision });
      },
    },
  ];
}

function parseDecision(body: unknown): {
  decision: "approve" | "deny";
  reason: string | undefined;
} {
  const remedy = 'Send {"decision": "approve"} or {"decision": "deny"}';
  expectBody(body, remedy);
  const { decision } = body;
  if (decision !== "approve" && decision !== "deny") {
    const code = decision === undefined ? "missing_field" : "invalid_value";
    const problem = decision === undefined ? "is missing" : 'must be "approve" or "deny"';
    throw fieldError(code, "decision", problem, remedy);
  }
  const reason = readText(body, "reason") ?? undefined;
  if (reason !== undefined && reason.length > maxReasonLength) {
    const problem = `has ${reason.length} characters`;
    throw fieldError("invalid_value", "reason", problem, `Send at most ${maxReasonLength}`);
  }
  return { decision, reason };
}

function wireApproval({ callId, server, toolName, arguments: args, askedAt }: PendingApproval) {
  return {
    call_id: callId,
    server,
    tool_name: toolName,
    arguments: args,
    asked_at: Math.floor(askedAt / 1000),
  };
}
