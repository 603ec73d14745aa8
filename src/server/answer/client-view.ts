/** What the client of a wire with one text an answer sees of a run. */

import { RoundText } from "../../chat/answer/round-text.ts";
import type { RunEvent } from "../../tools/types.ts";
import type { ToolMode } from "./tool-mode.ts";
import { isToolEvent } from "./tool-status.ts";

/**
 * The texts of the rounds become one, a blank line between them. Internal mode hides calls and their results: a
 * client's SDK would run the calls again.
 * @param tellsTools the client asked what the tools do @returns null: the client does not see the event
 */
export function clientView(
  mode: ToolMode,
  tellsTools: boolean,
): (event: RunEvent) => RunEvent | null {
  const content = new RoundText();
  const reasoning = new RoundText();
  return (event) => {
    switch (event.type) {
      case "hold":
        content.endRound();
        reasoning.endRound();
        return null;
      case "content":
        return { ...event, text: content.add(event.text) };
      case "reasoning":
        return { ...event, text: reasoning.add(event.text) };
      case "call-start":
      case "call-arguments":
      case "call-end":
        return mode.kind === "external" ? event : null;
      default:
        return !isToolEvent(event) || tellsTools ? event : null;
    }
  };
}
