/** A dialog in front of the page; the browser keeps the focus in it and closes it with Escape. */

import { type ReactNode, useEffect, useId, useRef } from "react";
import { IconButton } from "./icon-button.tsx";

interface DialogProps {
  title: string;
  onClose(): void;
  children: ReactNode;
}

export function Dialog({ title, onClose, children }: DialogProps) {
  const dialog = useRef<HTMLDialogElement>(null);
  const titleId = useId();
  useEffect(() => {
    const element = dialog.current;
    element?.showModal();
    return () => element?.close();
  }, []);
  return (
    <dialog
      ref={dialog}
      aria-labelledby={titleId}
      onClose={onClose}
      onKeyDown={(event) => event.stopPropagation()}
      onClick={(event) => {
        if (event.target === dialog.current) onClose();
      }}
    >
      <div className="dialog-panel">
        <header>
          <h2 id={titleId}>{title}</h2>
          <IconButton icon="cross" label="Close" onClick={onClose} />
        </header>
        {children}
      </div>
    </dialog>
  );
}
