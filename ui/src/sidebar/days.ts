/** Groups conversations by their last use. Pure. */

import type { ConversationSummary } from "../api/wire.ts";

export interface DayGroup {
  name: string;
  items: ConversationSummary[];
}

const dayMs = 86_400_000;

export function groupByDay(conversations: readonly ConversationSummary[], now: number): DayGroup[] {
  const today = new Date(now).setHours(0, 0, 0, 0);
  const groups: DayGroup[] = [];
  for (const conversation of conversations) {
    const name = nameOf(conversation.updated_at * 1000, today);
    const known = groups.find((group) => group.name === name);
    if (known === undefined) groups.push({ name, items: [conversation] });
    else known.items.push(conversation);
  }
  return groups;
}

function nameOf(at: number, today: number): string {
  if (at >= today) return "Today";
  if (at >= today - dayMs) return "Yesterday";
  if (at >= today - 7 * dayMs) return "This week";
  return "Earlier";
}
