/** A user's message as plain text. Editing it makes a branch. */

import { memo, useEffect, useRef, useState } from "react";
import { messageOf } from "../api/request.ts";
import type { Message } from "../api/wire.ts";
import { showControls } from "../markdown/safe-text.ts";
import { ClippedText } from "../shell/clipped-text.tsx";
import { CopyButton } from "../shell/copy-button.tsx";
import { Icon } from "../shell/icon.tsx";
import { IconButton } from "../shell/icon-button.tsx";
import { edit } from "../state/actions.ts";
import { useStore } from "../state/store.ts";
import { BranchSwitch } from "./branch-switch.tsx";
import type { Siblings } from "./branches.ts";
import { editingId } from "./editing.ts";

interface UserMessageProps {
  message: Message;
  siblings: Siblings;
}

export const UserMessage = memo(
  function UserMessage({ message, siblings }: UserMessageProps) {
    const isEditing = useStore(editingId) === message.id;
    return (
      <article className="message user" aria-label="You" data-message={message.id}>
        {isEditing ? (
          <EditForm message={message} />
        ) : (
          <>
            {message.message !== "" && (
              <div className="bubble" dir="auto">
                <ClippedText text={message.message} lines={60} length={6000} />
              </div>
            )}
            <SentFiles files={message.files} />
            <footer className="message-actions">
              <BranchSwitch siblings={siblings} />
              <IconButton
                icon="edit"
                label="Edit message"
                onClick={() => editingId.set(message.id)}
              />
              <CopyButton text={message.message} label="Copy message" />
            </footer>
          </>
        )}
      </article>
    );
  },
  (a, b) => a.message.id === b.message.id && a.siblings.ids.length === b.siblings.ids.length,
);

function SentFiles({ files }: Pick<Message, "files">) {
  if (files.length === 0) return null;
  return (
    <ul className="attachments" aria-label="Files">
      {files.map(({ name, characters }, index) => (
        <li key={index}>
          <Icon name="file" />
          <bdi>{showControls(name)}</bdi>
          <small>{characters.toLocaleString("en")} characters</small>
        </li>
      ))}
    </ul>
  );
}

function EditForm({ message }: { message: Message }) {
  const [text, setText] = useState(message.message);
  const [error, setError] = useState<string | null>(null);
  const [isSending, setSending] = useState(false);
  const canSend = !isSending && (text.trim() !== "" || message.files.length > 0);
  const field = useRef<HTMLTextAreaElement>(null);
  useEffect(() => {
    let framesLeft = 60;
    let frame = 0;
    // The list hides a row until it is measured, and a hidden element cannot take focus.
    const focus = (): void => {
      field.current?.focus();
      field.current?.setSelectionRange(-1, -1);
      if (document.activeElement !== field.current && framesLeft-- > 0)
        frame = requestAnimationFrame(focus);
    };
    focus();
    return () => cancelAnimationFrame(frame);
  }, []);
  const send = async (): Promise<void> => {
    if (!canSend) return;
    setSending(true);
    setError(null);
    try {
      await edit(message, text);
      editingId.set(null);
    } catch (cause) {
      setError(messageOf(cause));
    } finally {
      setSending(false);
    }
  };
  return (
    <form
      className="edit-form"
      onSubmit={(event) => {
        event.preventDefault();
        void send();
      }}
    >
      <textarea
        ref={field}
        aria-label="Edited message"
        value={text}
        dir="auto"
        onChange={(event) => setText(event.target.value)}
        onKeyDown={(event) => {
          if (event.key === "Escape") {
            event.stopPropagation();
            editingId.set(null);
          }
          if (event.key === "Enter" && !event.shiftKey && !event.nativeEvent.isComposing) {
            event.preventDefault();
            void send();
          }
        }}
      />
      <SentFiles files={message.files} />
      {error !== null && <p role="alert">{error}</p>}
      <div className="buttons">
        <button type="submit" className="primary" disabled={!canSend}>
          Send as a branch
        </button>
        <button type="button" onClick={() => editingId.set(null)}>
          Cancel
        </button>
      </div>
    </form>
  );
}
