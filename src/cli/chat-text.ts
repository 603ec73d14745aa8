/** How the served model is spoken to, in words: for the banner, the log and doctor. */

export interface ChatFacts {
  hasTemplate: boolean;
  hasToolSection: boolean;
  toolFormat: string;
}

export const withoutTemplate =
  "no chat: the model has no chat template; give one with --chat-template-file FILE";

export function toolsText({ hasTemplate, hasToolSection, toolFormat }: ChatFacts): string {
  if (!hasTemplate) return withoutTemplate;
  return hasToolSection
    ? `the template's own section, format ${toolFormat}`
    : `generic prompt, since the template has no tool section; format ${toolFormat}`;
}
