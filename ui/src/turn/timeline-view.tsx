/** How an answer spent its time: prefill, decode, hold, tool, resume. */

import { useEffect, useMemo, useState } from "react";
import { runningMs } from "../state/conversation.ts";
import { formatMs, type Span, timelineOf } from "./timeline.ts";
import type { Turn } from "./turn.ts";

const names: Record<Span["phase"], string> = {
  queued: "queued",
  prefill: "prefill",
  decode: "decode",
  hold: "hold",
  tool: "tool",
  resume: "resume",
};

const refreshMs = 250;

export function TimelineView({ turn, messageId }: { turn: Turn; messageId: string }) {
  const isRunning = turn.end === null;
  const nowMs = useNow(isRunning, messageId);
  const { sequence, tools, endMs } = useMemo(
    () => timelineOf(turn.timeline, turn.toolCalls, nowMs),
    [turn.timeline, turn.toolCalls, nowMs],
  );
  if (sequence.length === 0) {
    return <p className="muted timeline-empty">No timeline was recorded for this answer.</p>;
  }
  const present = new Set([...sequence, ...tools].map(({ phase }) => phase));
  return (
    <figure className="timeline" aria-label="Timeline of this answer">
      <div className="tracks" aria-hidden="true">
        <Track spans={sequence} endMs={endMs} />
        {tools.map((span, index) => (
          <Track key={index} spans={[span]} endMs={endMs} />
        ))}
      </div>
      <figcaption>
        <ul className="legend" aria-hidden="true">
          {(Object.keys(names) as Span["phase"][])
            .filter((phase) => present.has(phase))
            .map((phase) => (
              <li key={phase} data-phase={phase}>
                {names[phase]} <b>{formatMs(totalOf([...sequence, ...tools], phase))}</b>
              </li>
            ))}
          <li className="total">{formatMs(endMs)} in all</li>
        </ul>
        <table className="visually-hidden">
          <caption>Phases of this answer</caption>
          <thead>
            <tr>
              <th scope="col">Phase</th>
              <th scope="col">Start</th>
              <th scope="col">Duration</th>
              <th scope="col">Tokens</th>
            </tr>
          </thead>
          <tbody>
            {[...sequence, ...tools].map((span, index) => (
              <tr key={index}>
                <td>{span.label === null ? names[span.phase] : `tool ${span.label}`}</td>
                <td>{formatMs(span.startMs)}</td>
                <td>{formatMs(span.endMs - span.startMs)}</td>
                <td>{span.tokens ?? ""}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </figcaption>
    </figure>
  );
}

function Track({ spans, endMs }: { spans: readonly Span[]; endMs: number }) {
  return (
    <div className="track">
      {spans.map(({ phase, startMs, endMs: spanEnd, label, tokens }, index) => (
        <span
          key={index}
          data-phase={phase}
          title={[
            label ?? names[phase],
            formatMs(spanEnd - startMs),
            ...(tokens === null ? [] : [`${tokens} tokens`]),
          ].join(", ")}
          style={{
            insetInlineStart: `${(100 * startMs) / endMs}%`,
            inlineSize: `${(100 * (spanEnd - startMs)) / endMs}%`,
          }}
        >
          {label}
        </span>
      ))}
    </div>
  );
}

function totalOf(spans: readonly Span[], phase: Span["phase"]): number {
  return spans
    .filter((span) => span.phase === phase)
    .reduce((total, { startMs, endMs }) => total + endMs - startMs, 0);
}

function useNow(isRunning: boolean, messageId: string): number | null {
  const [nowMs, setNowMs] = useState(() => (isRunning ? runningMs(messageId) : null));
  useEffect(() => {
    if (!isRunning) {
      setNowMs(null);
      return undefined;
    }
    const timer = setInterval(() => setNowMs(runningMs(messageId)), refreshMs);
    return () => clearInterval(timer);
  }, [isRunning, messageId]);
  return nowMs;
}
