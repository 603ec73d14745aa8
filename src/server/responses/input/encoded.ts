/** Text that a client carries in an `encrypted_content` and does not read. It is encoded, not encrypted: no secret is in it. */

const version = 1;

export type EncodedKind = "summary" | "reasoning";

export function encodeText(kind: EncodedKind, text: string): string {
  return Buffer.from(JSON.stringify({ version, [kind]: text }), "utf8").toString("base64url");
}

/** Null: another server made it, or it is of another kind. */
export function decodeText(kind: EncodedKind, encoded: string): string | null {
  try {
    const value = JSON.parse(Buffer.from(encoded, "base64url").toString("utf8"));
    if (value?.version === version && typeof value[kind] === "string") return value[kind];
  } catch {
    // Falls through: not ours.
  }
  return null;
}
