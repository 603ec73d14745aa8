import type { NativeEvent } from "../native/addon-types.ts";

/**
 * The time between two tokens of one generation, by the clock of the inference thread. A hold is no such
 * time: the first token after it begins anew.
 */
export class TokenIntervals {
  readonly #lastAt = new Map<number, number>();

  /** Milliseconds since the generation's last token; undefined if there is none, or this is no token. */
  next(event: NativeEvent): number | undefined {
    if (event.kind === "progress" || event.kind === "tool_call_ready") return undefined;
    if (event.kind !== "tokens") {
      this.#lastAt.delete(event.id);
      return undefined;
    }
    const last = this.#lastAt.get(event.id);
    this.#lastAt.set(event.id, event.at);
    return last === undefined ? undefined : event.at - last;
  }
}
