/** The model's reasoning, folded. */

import { useId, useState } from "react";
import { ClippedText } from "../shell/clipped-text.tsx";
import { Icon } from "../shell/icon.tsx";

export function Reasoning({ text, isThinking }: { text: string; isThinking: boolean }) {
  const [isOpen, setOpen] = useState(false);
  const id = useId();
  return (
    <section className="reasoning" aria-label="Reasoning">
      <button
        type="button"
        className="quiet"
        aria-expanded={isOpen}
        aria-controls={id}
        onClick={() => setOpen(!isOpen)}
      >
        <span className="chevron" aria-hidden="true">
          <Icon name="right" />
        </span>
        {isThinking ? "Thinking…" : "Reasoning"}
      </button>
      <p id={id} dir="auto" className="reasoning-text" hidden={!isOpen}>
        {isOpen && <ClippedText text={text} lines={200} length={20_000} />}
      </p>
    </section>
  );
}
