/** One line that says what an answer is doing now; a hold shows the fermata sign. */

import { FermataMark } from "../shell/icon.tsx";
import { currentPhase } from "./timeline.ts";
import { callsOf, delegateOf, type Turn } from "./turn.ts";

export function RunStatus({ turn }: { turn: Turn }) {
  const { text, isHeld } = runStatusOf(turn);
  return (
    <p className="run-status" data-held={isHeld}>
      {isHeld ? <FermataMark /> : <span className="spinner" aria-hidden="true" />}
      {text}
    </p>
  );
}

export function runStatusOf(turn: Turn): { text: string; isHeld: boolean } {
  const asking = turn.toolCalls.filter(({ progress }) => progress === "approval").length;
  if (asking > 0) return { text: "Held until you decide", isHeld: true };
  const running = callsOf(turn, null).filter(({ progress }) => progress === "running");
  if (running.length > 0) {
    const agents = running.filter((call) => delegateOf(call) !== null).length;
    const what = agents === running.length ? "sub-agent" : "tool";
    const verb = running.length === 1 ? "works" : "work";
    const text = `Held while ${running.length} ${what}${running.length === 1 ? "" : "s"} ${verb}`;
    return { text, isHeld: true };
  }
  switch (currentPhase(turn.timeline)) {
    case "queued":
      return { text: "Waiting for a free sequence", isHeld: false };
    case "prefill":
      return { text: "Reading", isHeld: false };
    case "hold":
      return { text: "Held", isHeld: true };
    case "resume":
      return { text: "Resuming", isHeld: false };
    case "decode":
    case null:
      return { text: "Writing", isHeld: false };
  }
}
