import { useState } from "react";
import { announce } from "../state/announcer.ts";
import { notice } from "../state/notice.ts";
import { copyText } from "./copy-text.ts";
import { IconButton } from "./icon-button.tsx";

const shownMs = 1500;

export function CopyButton({ text, label }: { text: string; label: string }) {
  const [isCopied, setCopied] = useState(false);
  const copy = async (): Promise<void> => {
    if (!(await copyText(text))) {
      notice.set("The browser did not let the page copy. Select the text and copy it yourself.");
      return;
    }
    setCopied(true);
    announce("Copied.");
    setTimeout(() => setCopied(false), shownMs);
  };
  return (
    <IconButton icon={isCopied ? "check" : "copy"} label={label} onClick={() => void copy()} />
  );
}
