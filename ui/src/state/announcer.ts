/** Announcements for screen readers. */

import { Store } from "./store.ts";

interface Announcement {
  key: number;
  text: string;
}

/** Earlier announcements stay while they may still be read out. */
const kept = 4;

export const announcements = new Store<readonly Announcement[]>([]);

/** Answers requested in this tab. Their end is announced. */
export const awaitedAnswers = new Set<string>();

export function announce(text: string): void {
  announcements.update((before) => {
    const key = (before.at(-1)?.key ?? 0) + 1;
    return [...before.slice(1 - kept), { key, text }];
  });
}
