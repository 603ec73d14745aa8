import type { Histogram } from "prom-client";
import type { ChatEvent } from "../../chat/types.ts";
import type { ToolEvent } from "../../tools/types.ts";
import type { Metrics } from "../metrics.ts";

export type RunEvent = ChatEvent | ToolEvent;

/** Passes events on and takes the times of the first token and of the first one after tool results. */
export async function* measuredEvents<Event extends RunEvent>(
  events: AsyncIterable<Event>,
  metrics: Metrics,
  startedAt: number,
): AsyncGenerator<Event, void, void> {
  let histogram: Histogram | null = metrics.firstToken;
  let since = startedAt;
  for await (const event of events) {
    const now = performance.now();
    if (event.type === "tool-end") {
      histogram = metrics.resumeFirstToken;
      since = now;
    } else if (carriesToken(event)) {
      histogram?.observe((now - since) / 1000);
      histogram = null;
    }
    yield event;
  }
}

function carriesToken({ type }: RunEvent): boolean {
  return (
    type === "content" || type === "reasoning" || type === "call-start" || type === "call-arguments"
  );
}
