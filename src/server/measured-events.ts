import type { ChatEvent } from "../chat/types.ts";
import type { ToolEvent } from "../tools/tool-round.ts";
import type { Metrics } from "./metrics.ts";

export type RunEvent = ChatEvent | ToolEvent;

/** Passes events on and takes their times: first token, tokens apart, first token after tool results. */
export async function* measuredEvents(
  events: AsyncIterable<RunEvent>,
  metrics: Metrics,
  startedAt: number,
): AsyncGenerator<RunEvent, void, void> {
  let histogram = metrics.firstToken;
  let since = startedAt;
  for await (const event of events) {
    const now = performance.now();
    if (event.type === "tool-end") {
      histogram = metrics.resumeFirstToken;
      since = now;
    } else if (carriesToken(event)) {
      histogram.observe((now - since) / 1000);
      histogram = metrics.interToken;
      since = now;
    }
    yield event;
  }
}

function carriesToken({ type }: RunEvent): boolean {
  return (
    type === "content" || type === "reasoning" || type === "call-start" || type === "call-arguments"
  );
}
