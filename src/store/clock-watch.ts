/** Whether the wall clock can be believed: after a jump, whatever was stored looks too old, or will. */

/** Less is how clocks are adjusted. */
const jumpMs = 3600_000;
/** A clock that jumped and stays where it is was right to do so, or the machine slept. */
const believedAfterMs = 24 * 3600_000;

export class ClockWatch {
  #wall = Date.now();
  #steady = performance.now();
  #jumpedAt: number | null = null;

  /** False for a day after the clock jumped, either way, unless it jumps back. */
  get isBelieved(): boolean {
    const [wall, steady] = [Date.now(), performance.now()];
    if (Math.abs(wall - this.#wall - (steady - this.#steady)) < jumpMs) {
      this.#jumpedAt = null;
      return true;
    }
    this.#jumpedAt ??= steady;
    if (steady - this.#jumpedAt < believedAfterMs) return false;
    this.#wall = wall;
    this.#steady = steady;
    this.#jumpedAt = null;
    return true;
  }
}
