/** Where messages are written, with their files and the answer's schema. */

import { memo, useRef, useState } from "react";
import type { Message } from "../api/wire.ts";
import { showControls } from "../markdown/safe-text.ts";
import { Icon } from "../shell/icon.tsx";
import { IconButton } from "../shell/icon-button.tsx";
import { sendMessage } from "../state/actions.ts";
import { announce } from "../state/announcer.ts";
import { openIdOf, openState, stop } from "../state/conversation.ts";
import { changeDraft, type Draft, useDraft } from "../state/draft.ts";
import { showFailure } from "../state/notice.ts";
import { changeSettings, useSettings } from "../state/settings.ts";
import { useSelected, useStore } from "../state/store.ts";
import { addFiles, fileError } from "./add-files.ts";
import { editingId } from "./editing.ts";
import { SchemaDialog } from "./schema-dialog.tsx";

interface ComposerProps {
  /** The run of the answer that is being generated. */
  runId: string | null;
  path: readonly Message[];
}

export const Composer = memo(function Composer({ runId, path }: ComposerProps) {
  const [showsSchema, setShowsSchema] = useState(false);
  const fileInput = useRef<HTMLInputElement>(null);
  const id = useSelected(openState, openIdOf);
  const { text, files, isSending, problem } = useDraft(id);
  const { response_format: format = null } = useSettings();
  const fileProblem = useStore(fileError);
  const canSend = !isSending && runId === null && (text.trim() !== "" || files.length > 0);

  const send = async (): Promise<void> => {
    if (canSend) await sendMessage();
  };
  const stopRun = async (): Promise<void> => {
    if (runId === null) return;
    announce("Stopping.");
    await stop(runId).catch(showFailure);
  };

  return (
    <>
      <form
        className="composer"
        aria-label="Message"
        onSubmit={(event) => {
          event.preventDefault();
          void send();
        }}
      >
        {(problem ?? fileProblem) !== null && (
          <p className="composer-error" role="alert">
            {problem ?? fileProblem}
          </p>
        )}
        <Attachments id={id} files={files} />
        <textarea
          id="message"
          aria-label="Message"
          placeholder="Write a message"
          rows={1}
          dir="auto"
          value={text}
          onChange={(event) => changeDraft(id, () => ({ text: event.target.value }))}
          onPaste={(event) => {
            if (event.clipboardData.files.length === 0) return;
            event.preventDefault();
            void addFiles([...event.clipboardData.files]);
          }}
          onKeyDown={(event) => {
            if (event.key === "Enter" && !event.shiftKey && !event.nativeEvent.isComposing) {
              event.preventDefault();
              void send();
            } else if (event.key === "Escape") {
              void stopRun();
            } else if (event.key === "ArrowUp" && text === "") {
              const mine = path.findLast(({ role }) => role === "user");
              if (mine === undefined) return;
              event.preventDefault();
              editingId.set(mine.id);
            }
          }}
        />
        <div className="composer-bar">
          <IconButton
            icon="file"
            label="Add text files"
            onClick={() => fileInput.current?.click()}
          />
          <input
            ref={fileInput}
            type="file"
            multiple
            hidden
            aria-label="Text files"
            onChange={(event) => {
              void addFiles([...(event.target.files ?? [])]);
              event.target.value = "";
            }}
          />
          <button
            type="button"
            className="icon-button labelled"
            aria-pressed={format !== null}
            title="Answer as JSON by a schema"
            onClick={() => setShowsSchema(true)}
          >
            <Icon name="braces" />
            {format === null ? "JSON" : showControls(format.json_schema?.name ?? format.type)}
          </button>
          <span className="spacer" />
          {runId === null ? (
            <button
              type="submit"
              className="send"
              aria-label="Send"
              title="Send"
              disabled={!canSend}
            >
              <Icon name="send" />
            </button>
          ) : (
            <button
              type="button"
              className="send stop"
              aria-label="Stop"
              title="Stop"
              onClick={() => void stopRun()}
            >
              <Icon name="stop" />
            </button>
          )}
        </div>
      </form>
      {/* Outside the form: a form inside a form would submit both. */}
      {showsSchema && (
        <SchemaDialog
          value={format}
          onChoose={(value) => void changeSettings({ response_format: value }).catch(showFailure)}
          onClose={() => setShowsSchema(false)}
        />
      )}
    </>
  );
});

function Attachments({ id, files }: { id: string | null } & Pick<Draft, "files">) {
  if (files.length === 0) return null;
  const remove = (index: number): void =>
    changeDraft(id, () => ({ files: files.filter((_, each) => each !== index) }));
  return (
    <ul className="attachments" aria-label="Files of this message">
      {files.map(({ name, text }, index) => (
        <li key={index}>
          <Icon name="file" />
          <bdi>{showControls(name)}</bdi>
          <small>{text.length.toLocaleString("en")} characters</small>
          <IconButton
            icon="cross"
            label={`Remove ${showControls(name)}`}
            onClick={() => remove(index)}
          />
        </li>
      ))}
    </ul>
  );
}
