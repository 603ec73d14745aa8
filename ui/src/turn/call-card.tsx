/** A tool call: its streamed arguments, state and result; for a delegation, the sub-agent's turn. */

import { memo, type ReactNode, useId, useState } from "react";
import { showControls } from "../markdown/safe-text.ts";
import { ClippedText } from "../shell/clipped-text.tsx";
import { Icon } from "../shell/icon.tsx";
import { ApprovalButtons } from "./approval-buttons.tsx";
import { QuestionForm } from "./question-form.tsx";
import { argumentEntries, argumentLine } from "./arguments.ts";
import { CallStateView } from "./call-state.tsx";
import { type Call, type CallState, delegateOf } from "./turn.ts";

interface CallCardProps {
  call: Call;
  state: CallState;
  /** The sub-agent's turn, shown in place of a delegation's result. */
  children?: ReactNode;
}

const resultLines = 12;
const resultLength = 2000;

export const CallCard = memo(function CallCard({ call, state, children }: CallCardProps) {
  const [chosen, setChosen] = useState<boolean | null>(null);
  // A card that the user watched stays open, whichever state it was first seen in.
  const [beganOpen] = useState(
    () => state === "writing" || state === "approval" || state === "running",
  );
  const agent = delegateOf(call);
  const isOpen = state === "approval" || (chosen ?? (beganOpen || agent !== null));
  const bodyId = useId();
  const name = showControls(agent ?? call.tool_name);
  return (
    <section className="call-card" data-state={state} aria-label={`Tool call ${name}`}>
      <button
        type="button"
        className="call-head"
        aria-expanded={isOpen}
        aria-controls={bodyId}
        onClick={() => setChosen(!isOpen)}
      >
        <Icon name={agent === null ? "tool" : "agent"} />
        <span className="call-name">{name}</span>
        <span className="call-line" dir="auto">
          {isOpen ? "" : argumentLine(call.arguments)}
        </span>
        <CallStateView state={state} milliseconds={call.milliseconds} />
        <span className="chevron" aria-hidden="true">
          <Icon name="down" />
        </span>
      </button>
      <div id={bodyId} className="call-body" hidden={!isOpen}>
        {isOpen && (
          <>
            <Arguments json={call.arguments} isWriting={state === "writing"} />
            {state === "approval" &&
              (call.question === null ? (
                <ApprovalButtons key={call.asking_id} call={call} />
              ) : (
                <QuestionForm key={call.asking_id} call={call} question={call.question} />
              ))}
            {state === "running" && <Progress call={call} />}
            {children === undefined ? (
              <Result text={call.content} hasFailed={state === "failed"} />
            ) : (
              <div className="agent-turn">{children}</div>
            )}
          </>
        )}
      </div>
    </section>
  );
});

interface ArgumentsProps {
  json: string;
  isWriting: boolean;
}

const Arguments = memo(function Arguments({ json, isWriting }: ArgumentsProps) {
  const entries = isWriting ? null : argumentEntries(json);
  if (entries === null) {
    return (
      <pre className="arguments-text" tabIndex={0} aria-label="Arguments">
        <ClippedText text={showControls(json)} lines={40} length={4000} />
      </pre>
    );
  }
  if (entries.length === 0) return null;
  return (
    <dl className="arguments" aria-label="Arguments">
      {entries.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>
            <ClippedText text={value} lines={8} length={800} />
          </dd>
        </div>
      ))}
    </dl>
  );
});

function Progress({ call: { status } }: { call: Call }) {
  if (status === null) return null;
  const { message = "", progress, total } = status;
  const part = progress === undefined || !total ? null : Math.min(1, progress / total);
  return (
    <div className="progress-line">
      {part !== null && <progress value={part} max={1} aria-label={message || "Progress"} />}
      <span dir="auto">{showControls(message)}</span>
    </div>
  );
}

function Result({ text, hasFailed }: { text: string; hasFailed: boolean }) {
  if (text === "") return null;
  return (
    <pre className="result" tabIndex={0} aria-label="Result" data-failed={hasFailed}>
      <ClippedText text={text} lines={resultLines} length={resultLength} />
    </pre>
  );
}
