/** One response from its plan to its last event. */

import { FermataError } from "../../errors.ts";
import type { RunEvent } from "../measured-events.ts";
import type { ResponseWriter } from "../openai/responses/response-writer.ts";
import type { McpCallResult } from "../openai/responses/events/mcp-call-events.ts";
import type { McpListToolsItem, UnnumberedEvent, WireEvent } from "../openai/responses/types.ts";
import { toFermataError } from "../plugins/errors.ts";
import { settledWithin } from "../settled-within.ts";

export interface ResponseRun {
  writer: ResponseWriter;
  events: AsyncGenerator<RunEvent, void, void>;
  lists: readonly McpListToolsItem[];
  /** Of earlier responses; see `ResponseWriter.foreign`. */
  foreign: readonly UnnumberedEvent[];
  /** Before the id goes out. */
  onBegin(): Promise<void>;
  /** Before the last event goes out. */
  onEnd(failure: FermataError | null): Promise<void>;
  /** A failure within this time is thrown, so that it gets its HTTP status. 0: none is. */
  patienceMs: number;
}

/** @throws what fails before the first event; later failures are told by the last one */
export async function* runResponse(run: ResponseRun): AsyncGenerator<WireEvent, void, void> {
  const { writer, events } = run;
  const pending = events.next();
  try {
    if (run.patienceMs > 0) await settledWithin(pending, run.patienceMs);
    else pending.catch(() => {});
    await run.onBegin();
    yield* writer.begin();
    yield* writer.foreign(run.foreign);
    for (const list of run.lists) yield* writer.toolList(list);
    yield* write(run, pending);
  } finally {
    await events.return();
  }
}

async function* write(
  run: ResponseRun,
  first: Promise<IteratorResult<RunEvent, void>>,
): AsyncGenerator<WireEvent, void, void> {
  const { writer, events } = run;
  try {
    for (let next = await first; next.done !== true; next = await events.next()) {
      const event = next.value;
      if (event.type === "finish") {
        const ending = writer.finish(event, Math.floor(Date.now() / 1000));
        await run.onEnd(null);
        yield* ending;
        return;
      }
      yield* eventsOf(writer, event);
    }
    throw new FermataError("internal_error", "The events ended without finish.");
  } catch (error) {
    const failure = toFermataError(error);
    const ending = failure.code === "cancelled" ? writer.cancel() : writer.fail(failure);
    await run.onEnd(failure);
    yield* ending;
  }
}

function eventsOf(
  writer: ResponseWriter,
  event: Exclude<RunEvent, { type: "finish" }>,
): WireEvent[] {
  if (event.type === "tool-start") return [];
  if (event.type === "tool-end") {
    const result: McpCallResult =
      event.outcome === "ok" ? { output: event.content } : { error: event.content };
    return writer.answered(event.call.id, result);
  }
  return writer.write(event);
}
