/** Reasoning, text and calls of a turn or of a sub-agent, in order. */

import { useMemo } from "react";
import { Markdown } from "../markdown/markdown.tsx";
import { CallCard } from "./call-card.tsx";
import { Reasoning } from "./reasoning.tsx";
import { segmentsOf } from "./segments.ts";
import { type Call, callsOf, callStateOf, type Turn } from "./turn.ts";

interface SegmentsProps {
  turn: Turn;
  /** The delegation whose sub-agent is shown; null for the turn itself. */
  parent: string | null;
  text: string;
  reasoning: string;
  /** The text is complete. */
  ended: boolean;
}

export function SegmentsView({ turn, parent, text, reasoning, ended }: SegmentsProps) {
  const segments = useMemo(() => segmentsOf(text, callsOf(turn, parent)), [text, turn, parent]);
  return (
    <>
      {reasoning !== "" && <Reasoning text={reasoning} isThinking={!ended && text === ""} />}
      {segments.map((segment, index) =>
        segment.kind === "text" ? (
          <Markdown
            key={segment.start}
            text={segment.text}
            ended={ended || index < segments.length - 1}
          />
        ) : (
          <div
            key={segment.calls[0]?.call_id}
            className="call-group"
            data-side-by-side={segment.areDelegations && segment.calls.length > 1}
          >
            {segment.calls.map((call) => (
              <CallCard key={call.call_id} call={call} state={callStateOf(call, turn.end !== null)}>
                {segment.areDelegations ? <AgentTurn turn={turn} call={call} /> : undefined}
              </CallCard>
            ))}
          </div>
        ),
      )}
    </>
  );
}

function AgentTurn({ turn, call }: { turn: Turn; call: Call }) {
  return (
    <SegmentsView
      turn={turn}
      parent={call.call_id}
      text={call.content}
      reasoning={call.reasoning}
      ended={callStateOf(call, turn.end !== null) !== "running"}
    />
  );
}
