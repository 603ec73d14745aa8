/** What a screen reader is told; short, and only what matters. */

import { Store } from "./store.ts";

interface Announcement {
  key: number;
  text: string;
}

/** Earlier ones stay for as long as they may still be read out. */
const kept = 4;

export const announcements = new Store<readonly Announcement[]>([]);

/** Answers that were asked for here: their ends are told, however quick they come. */
export const awaitedAnswers = new Set<string>();

export function announce(text: string): void {
  announcements.update((before) => {
    const key = (before.at(-1)?.key ?? 0) + 1;
    return [...before.slice(1 - kept), { key, text }];
  });
}
