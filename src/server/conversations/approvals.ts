import type { RouteOptions } from "fastify";
import type { PendingApproval } from "../../tools/approvals.ts";
import { optional, readBody, required, type FieldTable } from "../body/field.ts";
import { oneOf, record, text } from "../body/values.ts";
import type { RouteContext } from "../context.ts";
import { requestOwner } from "../http/access.ts";

export const decisionFields = {
  decision: required(
    oneOf(["approve", "deny", "cancel"], "decision"),
    "`cancel` leaves a question of a tool's server without an answer",
  ),
  reason: optional(text({ max: 2000 })),
  content: optional(record("Send an object"), "the answer to a question that has a schema"),
} satisfies FieldTable;

/** GET /api/approvals: calls that wait for a person, or whose server asks one. POST /api/approvals/{call_id}: the person's answer. */
export function approvalRoutes({ services, warnings }: RouteContext): RouteOptions[] {
  const { approvals } = services;
  const reading = { warn: warnings.warn };
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
        const show = 'Send {"decision": "approve"} or {"decision": "deny"}';
        const said = readBody(decisionFields, request.body, reading, show);
        await approvals.decide(requestOwner(request), callId, said);
        return await reply.send({ call_id: callId, decision: said.decision });
      },
    },
  ];
}

function wireApproval(pending: PendingApproval) {
  const { callId, server, toolName, arguments: args, askedAt, question, mayHaveRun } = pending;
  return {
    call_id: callId,
    server,
    tool_name: toolName,
    arguments: args,
    asked_at: Math.floor(askedAt / 1000),
    ...(question === undefined ? {} : { question }),
    ...(mayHaveRun === true && { may_have_run: true }),
  };
}
