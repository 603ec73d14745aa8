import { useState } from "react";
import { messageOf } from "../api/request.ts";
import type { ConversationSummary } from "../api/wire.ts";
import { showControls } from "../markdown/safe-text.ts";
import { Dialog } from "../shell/dialog.tsx";
import { IconButton } from "../shell/icon-button.tsx";
import { announce } from "../state/announcer.ts";
import { remove, rename } from "../state/conversation-list.ts";
import { showFailure } from "../state/notice.ts";
import { openConversation } from "../state/route.ts";

interface RowProps {
  conversation: ConversationSummary;
  isOpen: boolean;
  onOpen(): void;
}

export function ConversationRow({ conversation, isOpen, onOpen }: RowProps) {
  const [isRenaming, setRenaming] = useState(false);
  const [isDeleting, setDeleting] = useState(false);
  const title = showControls(conversation.title) || "Untitled";
  if (isRenaming) {
    return (
      <li>
        <RenameForm conversation={conversation} onEnd={() => setRenaming(false)} />
      </li>
    );
  }
  return (
    <li className="conversation-row" data-open={isOpen}>
      <a
        href={`/c/${encodeURIComponent(conversation.id)}`}
        aria-current={isOpen ? "page" : undefined}
        onClick={(event) => {
          if (event.metaKey || event.ctrlKey || event.shiftKey) return;
          event.preventDefault();
          openConversation(conversation.id);
          onOpen();
        }}
      >
        <span dir="auto">{title}</span>
        {conversation.run_id !== null && (
          <span className="spinner" role="img" aria-label="An answer is being written" />
        )}
      </a>
      <span className="row-actions">
        <IconButton
          icon="edit"
          label={`Rename ${title}`}
          title="Rename"
          onClick={() => setRenaming(true)}
        />
        <IconButton
          icon="trash"
          label={`Delete ${title}`}
          title="Delete"
          onClick={() => setDeleting(true)}
        />
      </span>
      {isDeleting && (
        <DeleteDialog title={title} id={conversation.id} onClose={() => setDeleting(false)} />
      )}
    </li>
  );
}

function RenameForm({ conversation, onEnd }: { conversation: ConversationSummary; onEnd(): void }) {
  const [title, setTitle] = useState(conversation.title);
  const save = async (): Promise<void> => {
    const wanted = title.trim();
    if (wanted !== "" && wanted !== conversation.title) {
      try {
        await rename(conversation.id, wanted);
        announce("Renamed.");
      } catch (error) {
        showFailure(error);
      }
    }
    onEnd();
  };
  return (
    <form
      className="rename-form"
      onSubmit={(event) => {
        event.preventDefault();
        void save();
      }}
    >
      <input
        aria-label="Title of the conversation"
        autoFocus
        value={title}
        onFocus={(event) => event.target.select()}
        onChange={(event) => setTitle(event.target.value)}
        onBlur={() => void save()}
        onKeyDown={(event) => {
          if (event.key !== "Escape") return;
          event.stopPropagation();
          onEnd();
        }}
      />
    </form>
  );
}

function DeleteDialog({ title, id, onClose }: { title: string; id: string; onClose(): void }) {
  const [error, setError] = useState<string | null>(null);
  const confirm = async (): Promise<void> => {
    try {
      await remove(id);
      announce("Deleted.");
    } catch (cause) {
      setError(messageOf(cause));
    }
  };
  return (
    <Dialog title="Delete this conversation?" onClose={onClose}>
      <p>
        “<bdi>{title}</bdi>” and all of its branches are deleted for good.
      </p>
      {error !== null && <p role="alert">{error}</p>}
      <div className="buttons">
        <button type="button" className="danger" onClick={() => void confirm()}>
          Delete
        </button>
        <button type="button" onClick={onClose}>
          Keep it
        </button>
      </div>
    </Dialog>
  );
}
