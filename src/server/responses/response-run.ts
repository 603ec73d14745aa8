/** One response from its plan to its last event. */

import type { ToolCall } from "../../chat/types.ts";
import { FermataError } from "../../errors.ts";
import type { RunEvent } from "../answer/run-event.ts";
import type { ResponseWriter } from "./response-writer.ts";
import type { McpCallResult } from "./events/mcp-call-events.ts";
import type { McpListToolsItem, UnnumberedEvent, WireEvent } from "./types.ts";
import { toFermataError } from "../http/errors.ts";
import type { Preparation } from "../http/preparation.ts";

export interface ResponseRun {
  writer: ResponseWriter;
  lists: readonly McpListToolsItem[];
  /** Of earlier responses; see `ResponseWriter.foreign`. */
  foreign: readonly UnnumberedEvent[];
  /** Calls that the user consented to: they are run first. */
  approved: readonly ApprovedCall[];
  /** Called once, after the approved calls were run. */
  start(): AsyncGenerator<RunEvent, void, void>;
  /** Before the id goes out. */
  onBegin(): Promise<void>;
  /** All calls of a round are written and wait for their outputs. */
  onHold(): Promise<void>;
  /** Before the last event goes out. */
  onEnd(failure: FermataError | null): Promise<void>;
  /** A failure within this time is thrown, so that it gets its HTTP status. 0: none is. */
  patienceMs: number;
  preparation: Preparation;
}

export interface ApprovedCall {
  call: ToolCall;
  requestId: string;
  run(): Promise<McpCallResult>;
}

/** @throws what fails before the first event; later failures are told by the last one */
export async function* runResponse(run: ResponseRun): AsyncGenerator<WireEvent, void, void> {
  const { writer, approved } = run;
  // Nothing that takes its time stands before the generation: its failures still get their status.
  const events = approved.length === 0 ? run.start() : null;
  const first = events?.next();
  try {
    if (first !== undefined && run.patienceMs > 0)
      await run.preparation.settle(first, run.patienceMs);
    else first?.catch(() => {});
    await run.onBegin();
    yield* writer.begin();
    yield* writer.foreign(run.foreign);
    for (const list of run.lists) yield* writer.toolList(list);
    for (const { call, requestId, run: execute } of approved) {
      yield* writer.approvedCall(call, requestId);
      yield* writer.answered(call.id, await execute());
    }
    yield* write(run, events ?? run.start(), first);
  } finally {
    await events?.return();
  }
}

async function* write(
  run: ResponseRun,
  events: AsyncGenerator<RunEvent, void, void>,
  first: Promise<IteratorResult<RunEvent, void>> | undefined,
): AsyncGenerator<WireEvent, void, void> {
  const { writer } = run;
  try {
    for (
      let next = await (first ?? events.next());
      next.done !== true;
      next = await events.next()
    ) {
      const event = next.value;
      if (event.type === "finish") {
        const ending = writer.finish(event, Math.floor(Date.now() / 1000));
        await run.onEnd(null);
        yield* ending;
        return;
      }
      yield* eventsOf(writer, event);
      if (event.type === "hold") await run.onHold();
    }
    throw new FermataError("internal_error", "The events ended without finish.");
  } catch (error) {
    const failure = toFermataError(error);
    const ending = failure.code === "cancelled" ? writer.cancel() : writer.fail(failure);
    await run.onEnd(failure);
    yield* ending;
  } finally {
    await events.return();
  }
}

function eventsOf(
  writer: ResponseWriter,
  event: Exclude<RunEvent, { type: "finish" }>,
): WireEvent[] {
  switch (event.type) {
    case "tool-start":
    case "tool-report":
    case "tool-approval":
      return [];
  }
  if (event.type === "tool-end") {
    // The end of the response says what becomes of it.
    if (event.outcome === "cancelled") return [];
    const result: McpCallResult =
      event.outcome === "ok" ? { output: event.content } : { error: event.content };
    return writer.answered(event.call.id, result);
  }
  return writer.write(event);
}
