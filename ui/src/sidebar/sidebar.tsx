/** The conversations: new, search, open, rename, delete. */

import { useMemo, useState } from "react";
import { showControls } from "../markdown/safe-text.ts";
import { FermataMark, Icon } from "../shell/icon.tsx";
import { IconButton } from "../shell/icon-button.tsx";
import { newConversation } from "../state/actions.ts";
import { conversationList, loadMore, refreshList } from "../state/conversation-list.ts";
import { openConversationId } from "../state/route.ts";
import { useStore } from "../state/store.ts";
import { ConversationRow } from "./conversation-row.tsx";
import { groupByDay } from "./days.ts";

export function Sidebar({ onClose }: { onClose(): void }) {
  const { status, conversations, hasMore, error } = useStore(conversationList);
  const openId = useStore(openConversationId);
  const [query, setQuery] = useState("");
  const found = useMemo(() => {
    const words = query.trim().toLowerCase().split(/\s+/).filter(Boolean);
    return conversations.filter(({ title }) =>
      words.every((word) => title.toLowerCase().includes(word)),
    );
  }, [conversations, query]);
  const groups = useMemo(() => groupByDay(found, Date.now()), [found]);

  return (
    <nav
      id="sidebar"
      className="sidebar"
      aria-label="Conversations"
      onKeyDown={(event) => event.key === "Escape" && onClose()}
    >
      <header>
        <span className="wordmark">
          <FermataMark />
          Fermata
        </span>
        <IconButton
          icon="plus"
          label="New conversation"
          title="New conversation (Alt N)"
          onClick={() => {
            newConversation();
            onClose();
          }}
        />
      </header>
      <label className="search-field">
        <Icon name="search" />
        <input
          id="search"
          type="search"
          placeholder="Search"
          aria-label="Search conversations"
          value={query}
          onChange={(event) => setQuery(event.target.value)}
        />
      </label>
      <div className="conversation-scroll" tabIndex={-1}>
        {status === "loading" && (
          <p className="list-note" role="status">
            Loading…
          </p>
        )}
        {status === "failed" && (
          <p className="list-note">
            {error ?? "The conversations could not be read."}{" "}
            <button type="button" className="quiet" onClick={() => void refreshList()}>
              Try again
            </button>
          </p>
        )}
        {status === "ready" && conversations.length === 0 && (
          <p className="list-note">No conversations yet. What you ask is kept here.</p>
        )}
        {status === "ready" && conversations.length > 0 && found.length === 0 && (
          <p className="list-note">Nothing is named “{showControls(query)}”.</p>
        )}
        {groups.map(({ name, items }) => (
          <section key={name} aria-label={name}>
            <h2>{name}</h2>
            <ul>
              {items.map((conversation) => (
                <ConversationRow
                  key={conversation.id}
                  conversation={conversation}
                  isOpen={conversation.id === openId}
                  onOpen={onClose}
                />
              ))}
            </ul>
          </section>
        ))}
        {hasMore && (
          <button type="button" className="quiet" onClick={() => void loadMore()}>
            Older conversations
          </button>
        )}
      </div>
    </nav>
  );
}
