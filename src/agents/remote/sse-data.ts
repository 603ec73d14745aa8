/** The `data` of server-sent events, from bytes in any pieces. */
export class SseData {
  readonly #decoder = new TextDecoder();
  #rest = "";
  #data: string[] = [];

  /** Of the events that are complete now. */
  push(bytes: Uint8Array): string[] {
    const text = this.#decoder.decode(bytes, { stream: true });
    // To look through a long line again and again, as its pieces come, would take too long.
    if (!/[\r\n]/.test(text)) {
      this.#rest += text;
      return [];
    }
    const lines = (this.#rest + text).split(/\r\n|\n|\r/);
    this.#rest = lines.pop() ?? "";
    const found: string[] = [];
    for (const line of lines) {
      if (line.startsWith("data:")) this.#data.push(line.slice(5).replace(/^ /, ""));
      else if (line === "" && this.#data.length > 0) {
        found.push(this.#data.join("\n"));
        this.#data = [];
      }
    }
    return found;
  }
}
