/** Makes untrusted text safe to show. Pure. */

const linkSchemes = new Set(["http:", "https:", "mailto:"]);

/** The normalised URL if its scheme is http, https or mailto; otherwise null. */
export function safeLink(address: string): string | null {
  try {
    const url = new URL(address);
    return linkSchemes.has(url.protocol) ? url.href : null;
  } catch {
    return null;
  }
}

/** Characters that hide, reverse or join others; not the joiner inside an emoji. */
const controls = /(?![\t\n])(?!(?<=\p{Extended_Pictographic}\uFE0F?)\u200D)[\p{Cc}\p{Cf}]/gu;

/** Spells out characters that change how other text looks. Used where a person approves something. */
export function showControls(text: string): string {
  return text.replace(controls, (character) => {
    const code = character.codePointAt(0)!.toString(16).toUpperCase().padStart(4, "0");
    return `‹U+${code}›`;
  });
}

export interface Clip {
  text: string;
  isClipped: boolean;
}

/** The beginning of a text, limited by characters and lines. It never splits a surrogate pair. */
export function clip(text: string, maxLength: number, maxLines: number): Clip {
  let end = Math.min(text.length, maxLength);
  let lines = 0;
  for (let at = text.indexOf("\n"); at !== -1 && at < end; at = text.indexOf("\n", at + 1)) {
    lines += 1;
    if (lines === maxLines) end = at;
  }
  const isClipped = end < text.length;
  if (isClipped && /[\uD800-\uDBFF]/.test(text[end - 1] ?? "")) end -= 1;
  return { text: text.slice(0, end), isClipped };
}

export function formatSize(length: number): string {
  if (length < 1000) return `${length} characters`;
  if (length < 1_000_000) return `${(length / 1000).toFixed(length < 10_000 ? 1 : 0)} k characters`;
  return `${(length / 1_000_000).toFixed(1)} M characters`;
}
