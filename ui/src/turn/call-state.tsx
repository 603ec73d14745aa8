/** A call's state as an icon and a word. */

import { FermataMark, Icon } from "../shell/icon.tsx";
import { formatMs } from "./timeline.ts";
import type { CallState } from "./turn.ts";

const words: Record<CallState, string> = {
  writing: "writing",
  approval: "waiting for approval",
  running: "running",
  done: "done",
  failed: "failed",
  denied: "denied",
  stopped: "stopped",
};

function StateSign({ state }: { state: CallState }) {
  switch (state) {
    case "writing":
    case "running":
      return <span className="spinner" aria-hidden="true" />;
    case "approval":
      return <FermataMark />;
    case "done":
      return <Icon name="check" />;
    case "failed":
      return <Icon name="warning" />;
    case "denied":
    case "stopped":
      return <Icon name="cross" />;
  }
}

interface CallStateProps {
  state: CallState;
  milliseconds: number | null;
}

export function CallStateView({ state, milliseconds }: CallStateProps) {
  return (
    <span className="call-state" data-state={state}>
      <StateSign state={state} />
      <span className="state-word">{words[state]}</span>
      {milliseconds !== null && <span className="call-time">{formatMs(milliseconds)}</span>}
    </span>
  );
}
