/**
 * Turns the bytes of a token stream into text. A character whose bytes are spread over tokens comes
 * out whole with its last byte; bytes that are no UTF-8 become U+FFFD.
 */
export class Detokenizer {
  readonly #decoder = new TextDecoder("utf-8", { ignoreBOM: true });

  /** The text that `bytes` completes; what it leaves unfinished waits for the next call. */
  push(bytes: Uint8Array): string {
    return this.#decoder.decode(bytes, { stream: true });
  }

  /** Ends the stream: an unfinished character becomes U+FFFD. A new stream may follow. */
  end(): string {
    return this.#decoder.decode();
  }
}
