/** How the served model is spoken to, in words: for the banner, the log and doctor. */

export interface ChatFacts {
  hasTemplate: boolean;
  hasToolSection: boolean;
  toolFormat: string;
}

export interface ChatText {
  subject: "Tools" | "Chat";
  text: string;
}

export function chatText({ hasTemplate, hasToolSection, toolFormat }: ChatFacts): ChatText {
  if (!hasTemplate)
    return {
      subject: "Chat",
      text: "none: the model has no chat template; give one with --chat-template FILE",
    };
  const way = hasToolSection
    ? "the template's own section"
    : "generic prompt, since the template has no tool section";
  return { subject: "Tools", text: `${way}; format ${toolFormat}` };
}

/** A line of the banner and of doctor's report. */
export function chatLine({ subject, text }: ChatText): string {
  return `${subject.padEnd(9)} ${text}`;
}
