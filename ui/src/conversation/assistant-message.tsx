/** An answer: reasoning, text and calls in order, its cost, and its actions. */

import { memo, useEffect, useRef, useState } from "react";
import type { Message, RunUsage } from "../api/wire.ts";
import { CodeBlock } from "../markdown/code-block.tsx";
import { CopyButton } from "../shell/copy-button.tsx";
import { Icon } from "../shell/icon.tsx";
import { IconButton } from "../shell/icon-button.tsx";
import { retry } from "../state/actions.ts";
import { announce, awaitedAnswers } from "../state/announcer.ts";
import { showFailure } from "../state/notice.ts";
import { Citations } from "../turn/citations.tsx";
import { RunStatus } from "../turn/run-status.tsx";
import { SegmentsView } from "../turn/segments-view.tsx";
import { TimelineView } from "../turn/timeline-view.tsx";
import { callsOf, emptyTurn, statusOf, type Turn } from "../turn/turn.ts";
import { BranchSwitch } from "./branch-switch.tsx";
import type { Siblings } from "./branches.ts";

interface AssistantMessageProps {
  message: Message;
  turn: Turn | undefined;
  siblings: Siblings;
  isLast: boolean;
}

export const AssistantMessage = memo(
  function AssistantMessage({ message, turn = emptyTurn, siblings }: AssistantMessageProps) {
    const status = statusOf(turn);
    const isRunning = status === "running";
    const [showsTimeline, setShowsTimeline] = useState(false);
    useAnnouncements(turn, message.id);
    return (
      <article
        className="message assistant"
        aria-label="Answer"
        aria-busy={isRunning}
        data-message={message.id}
        data-status={status}
      >
        <Answer turn={turn} />
        <Citations citations={turn.citations} />
        {isRunning ? <RunStatus turn={turn} /> : <Ending turn={turn} messageId={message.id} />}
        {showsTimeline && <TimelineView turn={turn} messageId={message.id} />}
        <footer className="message-actions">
          <BranchSwitch siblings={siblings} />
          <IconButton
            icon="timeline"
            label="Timeline"
            aria-expanded={showsTimeline}
            onClick={() => setShowsTimeline(!showsTimeline)}
          />
          {!isRunning && <CopyButton text={turn.message} label="Copy answer" />}
          {!isRunning && <RetryButton messageId={message.id} />}
          {turn.end?.usage !== undefined && <UsageLine usage={turn.end.usage} />}
        </footer>
      </article>
    );
  },
  (a, b) =>
    a.message.id === b.message.id &&
    a.turn === b.turn &&
    a.isLast === b.isLast &&
    a.siblings.ids.length === b.siblings.ids.length,
);

function Answer({ turn }: { turn: Turn }) {
  const ended = turn.end !== null;
  const { message: text, reasoning, toolCalls } = turn;
  if (toolCalls.length === 0 && isJson(text, ended)) {
    return <CodeBlock text={ended ? indented(text) : text} language="json" isFinal={ended} />;
  }
  return <SegmentsView turn={turn} parent={null} text={text} reasoning={reasoning} ended={ended} />;
}

/** An answer by a schema is data, not prose. */
function isJson(text: string, ended: boolean): boolean {
  if (!/^\s*(?:\{\s*(?:"|\}|$)|\[\s*(?:[[{"\d\]]|$))/.test(text)) return false;
  if (!ended) return true;
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

function indented(json: string): string {
  return JSON.stringify(JSON.parse(json), null, 2);
}

function Ending({ turn, messageId }: { turn: Turn; messageId: string }) {
  switch (statusOf(turn)) {
    case "cancelled":
      return <p className="ending">Stopped.</p>;
    case "length":
      return <p className="ending">Cut off: the limit of tokens was reached.</p>;
    case "failed":
      return (
        <div className="ending failed" role="group" aria-label="Failure">
          <Icon name="warning" />
          <p>{turn.end?.error?.message ?? "The answer failed."}</p>
          <RetryButton messageId={messageId} isLabelled />
        </div>
      );
    default:
      return null;
  }
}

function RetryButton({
  messageId,
  isLabelled = false,
}: {
  messageId: string;
  isLabelled?: boolean;
}) {
  const [isSent, setSent] = useState(false);
  const run = async (): Promise<void> => {
    setSent(true);
    try {
      await retry(messageId);
    } catch (error) {
      showFailure(error);
    } finally {
      setSent(false);
    }
  };
  return (
    <button
      type="button"
      className={isLabelled ? undefined : "icon-button"}
      aria-label={isLabelled ? undefined : "Try again"}
      title="Try again"
      disabled={isSent}
      data-retry={messageId}
      onClick={() => void run()}
    >
      {isLabelled ? "Try again" : <Icon name="retry" />}
    </button>
  );
}

function UsageLine({ usage }: { usage: RunUsage }) {
  const { prompt_tokens: prompt, completion_tokens: written, cached_tokens: cached } = usage;
  const computed = usage.prefilled_tokens;
  const count = (value: number): string => value.toLocaleString("en");
  return (
    <span
      className="usage"
      title={`${count(prompt)} tokens read, ${count(cached)} of them from the cache, ${count(computed)} computed`}
    >
      {count(written)} tokens written · {count(prompt)} read, {count(cached)} cached
    </span>
  );
}

const longestSpoken = 300;

/** Longer answers are not announced. */
function shortText({ message }: Turn): string {
  return message.length > longestSpoken ? "" : message;
}

/** A screen reader announces calls and the end, not every word. */
function useAnnouncements(turn: Turn, messageId: string): void {
  const before = useRef(awaitedAnswers.delete(messageId) ? emptyTurn : turn);
  useEffect(() => {
    const earlier = before.current;
    before.current = turn;
    const own = new Set(callsOf(turn, null));
    for (const call of turn.toolCalls) {
      const { call_id: id, tool_name: name, progress } = call;
      const was = earlier.toolCalls.find((each) => each.call_id === id)?.progress;
      if (was === progress) continue;
      if (progress === "approval") announce(`${name} waits for your approval.`);
      else if (progress === "running" && own.has(call)) announce(`${name} runs.`);
      else if (progress === "failed") announce(`${name} failed.`);
    }
    if (earlier.end !== null || turn.end === null) return;
    if (turn.end.status === "complete") announce(`Answer finished. ${shortText(turn)}`);
    else announce(turn.end.error?.message ?? "The answer was stopped.");
  }, [turn]);
}
