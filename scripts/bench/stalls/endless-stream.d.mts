/** Resolves once the headers have come. */
export function openEndlessStream(
  url: string,
  onPiece: (piece: Uint8Array) => void,
): Promise<{ ended: Promise<void>; leave(): void }>;
