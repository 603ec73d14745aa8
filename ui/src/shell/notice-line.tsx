/** Why the last thing that was asked for could not be done. */

import { showControls } from "../markdown/safe-text.ts";
import { notice } from "../state/notice.ts";
import { useStore } from "../state/store.ts";
import { IconButton } from "./icon-button.tsx";

export function NoticeLine() {
  const text = useStore(notice);
  if (text === null) return null;
  return (
    <p className="notice-line" role="alert">
      {showControls(text)}
      <IconButton icon="cross" label="Close this notice" onClick={() => notice.set(null)} />
    </p>
  );
}
