import { useState } from "react";
import { announce } from "../state/announcer.ts";
import { Icon } from "./icon.tsx";

const shownMs = 1500;

export function CopyButton({ text, label }: { text: string; label: string }) {
  const [isCopied, setCopied] = useState(false);
  const copy = async (): Promise<void> => {
    await navigator.clipboard.writeText(text);
    setCopied(true);
    announce("Copied.");
    setTimeout(() => setCopied(false), shownMs);
  };
  return (
    <button
      type="button"
      className="icon-button"
      aria-label={label}
      title={label}
      onClick={() => void copy()}
    >
      <Icon name={isCopied ? "check" : "copy"} />
    </button>
  );
}
