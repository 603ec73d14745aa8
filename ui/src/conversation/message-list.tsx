/** The messages of a branch. Only messages near the visible part are in the document. */

import { useCallback, useEffect, useLayoutEffect, useRef, useState } from "react";
import { Virtualizer } from "virtua";
import type { Message } from "../api/wire.ts";
import { Icon } from "../shell/icon.tsx";
import type { Turn } from "../turn/turn.ts";
import { AssistantMessage } from "./assistant-message.tsx";
import { type Branches, siblingsOf } from "./branches.ts";
import { UserMessage } from "./user-message.tsx";

/** Closer to the end than this, the list follows new text. In pixels. */
const nearEnd = 80;
/** Extra height above and below that stays in the document, in pixels. */
const bufferSize = 800;

interface MessageListProps {
  path: readonly Message[];
  branches: Branches;
  turns: Readonly<Record<string, Turn>>;
}

export function MessageList({ path, branches, turns }: MessageListProps) {
  const scroller = useRef<HTMLDivElement>(null);
  const content = useRef<HTMLDivElement>(null);
  const { isAtEnd, followEnd } = useFollowing(scroller, content);
  const lastId = path.at(-1)?.id;
  // A new message is always shown.
  useLayoutEffect(() => followEnd(), [lastId, followEnd]);

  return (
    <div className="message-area">
      <div
        ref={scroller}
        className="message-scroll"
        role="log"
        aria-live="off"
        aria-label="Messages"
        tabIndex={0}
      >
        <div ref={content} className="message-column">
          <Virtualizer
            scrollRef={scroller}
            data={path}
            bufferSize={bufferSize}
            keepMounted={[path.length - 1]}
          >
            {(message) => {
              const siblings = siblingsOf(branches, message);
              return message.role === "user" ? (
                <UserMessage key={message.id} message={message} siblings={siblings} />
              ) : (
                <AssistantMessage
                  key={message.id}
                  message={message}
                  turn={turns[message.id]}
                  siblings={siblings}
                  isLast={message.id === lastId}
                />
              );
            }}
          </Virtualizer>
        </div>
      </div>
      {!isAtEnd && (
        <button type="button" className="to-end" aria-label="Go to the end" onClick={followEnd}>
          <Icon name="down" />
        </button>
      )}
    </div>
  );
}

function useFollowing(
  scroller: React.RefObject<HTMLDivElement | null>,
  content: React.RefObject<HTMLDivElement | null>,
) {
  const isFollowing = useRef(true);
  const [isAtEnd, setAtEnd] = useState(true);
  const followEnd = useCallback(() => {
    const element = scroller.current;
    if (element === null) return;
    isFollowing.current = true;
    element.scrollTop = element.scrollHeight;
  }, [scroller]);

  useEffect(() => {
    const element = scroller.current;
    if (element === null || content.current === null) return undefined;
    let lastTop = element.scrollTop;
    const onScroll = (): void => {
      const distance = element.scrollHeight - element.scrollTop - element.clientHeight;
      // Growth below is not scrolling: only a person scrolls up.
      if (element.scrollTop < lastTop - 1 && distance > nearEnd) isFollowing.current = false;
      else if (distance <= nearEnd) isFollowing.current = true;
      lastTop = element.scrollTop;
      setAtEnd(distance <= nearEnd || isFollowing.current);
    };
    const observer = new ResizeObserver(() => {
      if (isFollowing.current) element.scrollTop = element.scrollHeight;
    });
    observer.observe(content.current);
    observer.observe(element);
    element.addEventListener("scroll", onScroll, { passive: true });
    return () => {
      observer.disconnect();
      element.removeEventListener("scroll", onScroll);
    };
  }, [scroller, content]);

  return { isAtEnd, followEnd };
}
