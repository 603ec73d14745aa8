import { JsonScanner } from "../../chat/formats/readers/json-scanner.ts";

/**
 * A call's arguments as they may be streamed: the longest beginning that is one JSON object. Clients
 * parse the pieces, and a character that breaks the JSON cannot be taken back.
 */
export class InputJson {
  readonly #scanner = new JsonScanner();
  #state: "before" | "open" | "closed" = "before";

  get isEmpty(): boolean {
    return this.#state === "before";
  }

  /** @returns the part of `delta` that may be sent */
  push(delta: string): string {
    let valid = "";
    for (const character of delta) {
      if (this.#state === "closed") break;
      if (this.#state === "before" && character.trim() === "") continue;
      if (this.#state === "before" && character !== "{") this.#state = "closed";
      else valid += this.#scan(character);
    }
    return valid;
  }

  #scan(character: string): string {
    const result = this.#scanner.feed(character);
    this.#state = result === "more" ? "open" : "closed";
    return result === "more" || result === "end" ? character : "";
  }
}
