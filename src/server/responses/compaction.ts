/** A compaction item carries a summary of what it replaces. It is encoded, not encrypted: no secret is in it. */

const heading = "Summary of the conversation so far:";

export function encodeSummary(summary: string): string {
  return Buffer.from(JSON.stringify({ version: 1, summary }), "utf8").toString("base64url");
}

/** What asks the model for a summary of what stands before it. */
export const summaryRequest =
  "Summarize the conversation so far for someone who continues it and will not see it: the goal, what was asked, what was done and found out, names, paths and figures that matter, and what is still open. Answer with the summary alone.";

/** What the model reads in place of the turns. Content of another server's making cannot be read. */
export function compactionText(encoded: string): string {
  try {
    const { version, summary } = JSON.parse(Buffer.from(encoded, "base64url").toString("utf8"));
    if (version === 1 && typeof summary === "string") return `${heading}\n\n${summary}`;
  } catch {
    // Falls through: not ours.
  }
  return "[Earlier turns were compacted by another server and cannot be read.]";
}
