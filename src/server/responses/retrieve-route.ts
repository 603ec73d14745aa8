import type { RouteOptions } from "fastify";
import { fieldError } from "../body/fields.ts";
import { requestOwner } from "../http/authentication.ts";
import { streamAnswer } from "../http/stream-answer.ts";
import { ResponseEventStream } from "./response-event-stream.ts";
import type { ResponsesContext } from "./context.ts";
import type { WireEvent } from "./types.ts";

/** GET /v1/responses/{id}: as it is now, or its events as a stream from `starting_after`. */
export function retrieveResponseRoute({ responses, config }: ResponsesContext): RouteOptions {
  return {
    method: "GET",
    url: "/v1/responses/:id",
    handler: async (request, reply) => {
      const owner = requestOwner(request);
      const { id } = request.params as { id: string };
      const query = request.query as Record<string, string | undefined>;
      if (!readStream(query["stream"])) return await responses.retrieve(owner, id);
      const after = readStartingAfter(query["starting_after"]);
      const events: AsyncGenerator<WireEvent, void, void> = await responses.replay(
        owner,
        id,
        after,
      );
      await streamAnswer(events, new ResponseEventStream(), { request, reply, config });
      return reply;
    },
  };
}

function readStream(value: string | undefined): boolean {
  if (value === undefined || value === "false") return false;
  if (value === "true") return true;
  throw fieldError("invalid_value", "stream", "is neither true nor false", "Send true or false");
}

function readStartingAfter(value: string | undefined): number {
  if (value === undefined) return -1;
  if (/^\d{1,9}$/.test(value)) return Number(value);
  throw fieldError(
    "invalid_value",
    "starting_after",
    "is not a sequence number",
    "Send the number of the last event that was read",
  );
}
