/** Where several models are served: what a request means for a response that waits for it, before a model is there. */

import { isJsonObject } from "../../json.ts";
import { finishInTurns } from "../../parts.ts";
import { isClientOutput } from "./calls/client-calls.ts";
import { parseResponsesRequest } from "./request.ts";
import type { ResponsesContext } from "./service.ts";
import type { Item } from "./types.ts";

/**
 * A response that waits keeps its model in memory, so what it waits for must not wait for a model behind others.
 * @returns the id of the response that continues
 * @throws as `ResponseService.resume`
 */
export async function resumeBeforeModel(
  body: unknown,
  owner: string,
  { services, config, responses, warnings }: ResponsesContext,
): Promise<string | null> {
  if (services.models === undefined || !mayFollow(body)) return null;
  if (responses.live.isEmpty && !services.store?.shared) return null;
  const { contextSize } = services.model;
  const sampling = { ...config.sampling, seed: 0, logitBias: [] };
  // Token ids are checked once the request's model is there.
  const limits = { sampling, contextSize, vocabularySize: Infinity };
  const request = await finishInTurns(parseResponsesRequest(body, limits, warnings.warn));
  return await responses.resume(request, owner);
}

function mayFollow(body: unknown): boolean {
  if (!isJsonObject(body)) return false;
  const { previous_response_id: previous, input } = body;
  if (typeof previous === "string") return true;
  return (
    Array.isArray(input) && input.some((item) => isJsonObject(item) && isClientOutput(item as Item))
  );
}
