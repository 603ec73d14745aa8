/** `fermata/client/react`: a run's stream as the state of a component. */

import { useCallback, useEffect, useRef, useState } from "react";
import {
  applyEvent,
  type ConversationState,
  emptyState,
  type ToolCallState,
} from "./conversation-state.ts";
import { readConversation, type ReadOptions, StreamError } from "./read-conversation.ts";
import type { ConversationEvent } from "./types.ts";

export type StreamStatus = "idle" | "connecting" | "streaming" | "ended" | "failed";

export interface ToolCallStream {
  state: ConversationState;
  /** The same calls, by id. */
  toolCalls: ReadonlyMap<string, ToolCallState>;
  status: StreamStatus;
  /** Why `status` is `failed`. */
  error: StreamError | null;
  /** Takes an event that came by other ways. */
  processChunk: (event: ConversationEvent) => void;
  reset: () => void;
}

/**
 * Reads `url` while the component stands, from the start, and again when it changes. Null: nothing is
 * read, the state stays, events come by `processChunk`. `options` are those of the first render with this url.
 */
export function useToolCallStream(
  url: string | null = null,
  options: Omit<ReadOptions, "signal"> = {},
): ToolCallStream {
  const [state, setState] = useState(emptyState);
  const [status, setStatus] = useState<StreamStatus>("idle");
  const [error, setError] = useState<StreamError | null>(null);
  const latest = useRef(emptyState);
  const optionsOf = useRef(options);
  optionsOf.current = options;

  const processChunk = useCallback((event: ConversationEvent): void => {
    latest.current = applyEvent(latest.current, event);
    setState(latest.current);
  }, []);

  const reset = useCallback((): void => {
    latest.current = emptyState;
    setState(emptyState);
  }, []);

  useEffect(() => {
    setError(null);
    setStatus(url === null ? "idle" : "connecting");
    if (url === null) return;
    const abort = new AbortController();
    const { onConnection, ...rest } = optionsOf.current;
    reset();
    const read = async (): Promise<void> => {
      const events = readConversation(url, {
        ...rest,
        signal: abort.signal,
        onConnection: (change) => {
          setStatus(change.type === "open" ? "streaming" : "connecting");
          onConnection?.(change);
        },
      });
      for await (const { event } of events) processChunk(event);
      setStatus("ended");
    };
    read().catch((reason: unknown) => {
      if (abort.signal.aborted) return;
      setError(reason instanceof StreamError ? reason : unknownError(reason));
      setStatus("failed");
    });
    return () => {
      abort.abort();
    };
  }, [url, processChunk, reset]);

  const toolCalls = new Map(state.toolCalls.map((call) => [call.call_id, call]));
  return { state, toolCalls, status, error, processChunk, reset };
}

function unknownError(reason: unknown): StreamError {
  return new StreamError(reason instanceof Error ? reason.message : String(reason), 0, "unknown");
}
