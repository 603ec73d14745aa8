/** Files dropped anywhere on a conversation become part of the next message, as text. */

import { type DragEvent, type ReactNode, useRef, useState } from "react";
import { addFiles } from "./add-files.ts";

export function DropArea({ children }: { children: ReactNode }) {
  const [isOver, setOver] = useState(false);
  const depth = useRef(0);
  const hasFiles = (event: DragEvent): boolean => event.dataTransfer.types.includes("Files");
  return (
    <div
      className="conversation"
      onDragEnter={(event) => {
        if (!hasFiles(event)) return;
        depth.current += 1;
        setOver(true);
      }}
      onDragLeave={() => {
        depth.current = Math.max(0, depth.current - 1);
        if (depth.current === 0) setOver(false);
      }}
      onDragOver={(event) => hasFiles(event) && event.preventDefault()}
      onDrop={(event) => {
        if (!hasFiles(event)) return;
        event.preventDefault();
        depth.current = 0;
        setOver(false);
        void addFiles([...event.dataTransfer.files]);
      }}
    >
      {children}
      {isOver && <div className="drop-hint">Drop text files to add them to your message</div>}
    </div>
  );
}
