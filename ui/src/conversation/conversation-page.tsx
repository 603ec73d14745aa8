/** The open conversation, or the start of a new one. */

import { useEffect, useMemo, useState } from "react";
import { openState, refresh } from "../state/conversation.ts";
import { openConversation } from "../state/route.ts";
import { useStore } from "../state/store.ts";
import { branchesOf, pathTo } from "./branches.ts";
import { Composer } from "./composer.tsx";
import { DropArea } from "./drop-area.tsx";
import { EmptyState } from "./empty-state.tsx";
import { MessageList } from "./message-list.tsx";

export function ConversationPage() {
  const state = useStore(openState);
  const messages = state?.conversation?.messages;
  const branches = useMemo(() => branchesOf(messages ?? []), [messages]);
  const leafId = state?.conversation?.leaf_id ?? null;
  const path = useMemo(() => pathTo(branches, leafId), [branches, leafId]);
  const runId = path.findLast(({ role }) => role === "assistant")?.run_id ?? null;
  const isRunning = path.at(-1)?.status === "running";
  const isBlank = state === null || (state.status === "ready" && path.length === 0);

  return (
    <DropArea>
      {isBlank && <EmptyState />}
      {state?.status === "loading" && <Loading />}
      {state?.status === "missing" && (
        <Notice title="This conversation is not here">
          <p>It was deleted, or it belongs to another key.</p>
          <button type="button" className="primary" onClick={() => openConversation(null)}>
            Start a new one
          </button>
        </Notice>
      )}
      {state?.status === "failed" && (
        <Notice title="The conversation could not be read">
          <p>{state.error ?? "The server does not answer."}</p>
          <button type="button" className="primary" onClick={() => void refresh()}>
            Try again
          </button>
        </Notice>
      )}
      {state?.status === "ready" && path.length > 0 && (
        <MessageList key={state.id} path={path} branches={branches} turns={state.turns} />
      )}
      {state?.isReconnecting === true && isRunning && (
        <p className="reconnecting" role="status">
          The connection to this answer was lost. Looking for it…
        </p>
      )}
      {(isBlank || state?.status === "ready") && (
        <Composer runId={isRunning ? runId : null} path={path} />
      )}
    </DropArea>
  );
}

const loadingAfterMs = 150;

/** The skeleton appears only after a delay, so a quick answer shows none. */
function Loading() {
  const [isShown, setShown] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => setShown(true), loadingAfterMs);
    return () => clearTimeout(timer);
  }, []);
  return (
    <div className="message-scroll loading" role="status" aria-label="Loading the conversation">
      {isShown &&
        ["one", "two", "three"].map((key) => (
          <div key={key} className="skeleton">
            <span />
            <span />
            <span />
          </div>
        ))}
    </div>
  );
}

function Notice({ title, children }: { title: string; children: React.ReactNode }) {
  return (
    <section className="notice" aria-label={title}>
      <h2>{title}</h2>
      {children}
    </section>
  );
}
