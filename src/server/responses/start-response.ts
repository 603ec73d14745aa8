/** From a checked request to the events of its response. */

import { toMessages } from "../openai/responses/messages.ts";
import { newId } from "../openai/responses/ids.ts";
import { newResponse } from "../openai/responses/response-object.ts";
import type { ResponsesRequest } from "../openai/responses/parse-request.ts";
import { ResponseWriter } from "../openai/responses/response-writer.ts";
import type { ResponseObject, WireEvent } from "../openai/responses/types.ts";
import { runEvents, type RunContext } from "../run-request.ts";
import { openStreamAfterMs } from "../stream-answer.ts";
import { EventLog } from "./event-log.ts";
import { runResponse } from "./response-run.ts";
import { planTools } from "./tool-plan.ts";

/** The longest that a timer takes: about 24 days. */
const maxTimerMs = 2 ** 31 - 1;

export interface StartContext extends RunContext {
  owner: string;
  signal: AbortSignal;
}

export interface StartedResponse {
  response: ResponseObject;
  events: AsyncGenerator<WireEvent, void, void>;
}

export function startResponse(request: ResponsesRequest, context: StartContext): StartedResponse {
  const { services, log, signal, owner } = context;
  const plan = planTools(request, services.tools, null);
  const response = newResponse(request, {
    id: newId("resp"),
    createdAt: Math.floor(Date.now() / 1000),
    model: services.model.id,
    stores: false,
  });
  const writer = new ResponseWriter({
    response,
    extended: request.events === "extended",
    waitsForOutputs: false,
    present: plan.present,
  });
  const conversation = {
    messages: toMessages(request.input, request.instructions, plan.names),
    sampling: request.sampling,
    stop: [],
    maxTokens: request.maxOutputTokens ?? undefined,
    signal,
    owner,
  };
  const events = runResponse({
    writer,
    events: runEvents(conversation, plan.mode, context),
    lists: plan.lists,
    foreign: [],
    onBegin: async () => {},
    onEnd: async () => {},
    patienceMs: request.stream ? openStreamAfterMs : maxTimerMs,
  });
  const eventLog = new EventLog(log, { response: response.id, compat: true });
  return { response, events: logged(events, eventLog) };
}

async function* logged(
  events: AsyncGenerator<WireEvent, void, void>,
  log: EventLog,
): AsyncGenerator<WireEvent, void, void> {
  for await (const event of events) {
    log.write(event);
    yield event;
  }
}
