import { slowdownOf } from "./host.mjs";

/** What things take on the machine of a calibration; see calibrate.mjs for its fields. Milliseconds. */
export class ServiceTimes {
  #calibration;

  constructor(calibration) {
    this.#calibration = calibration;
  }

  /** One step: its passes over the weights, attention to what is in the cache, cells that were moved, its tokens sent. */
  stepMs({ passes, decodeAttended, chunkAttended, movedBytes, tokens }) {
    const { attention, movedBytesPerMs, token } = this.#calibration;
    const weights = passes.reduce((total, rows) => total + this.passMs(rows), 0);
    return (
      weights +
      decodeAttended * attention.decodeMs +
      chunkAttended * attention.chunkMs +
      movedBytes / movedBytesPerMs +
      tokens * token.sentMs
    );
  }

  /** How steps of this kind slow down beside other replicas on their machine. */
  slowdownsOf({ chunkAttended }) {
    const { chunk, decode } = this.#calibration.slowdowns;
    return chunkAttended > 0 ? chunk : decode;
  }

  /** A pass of so many rows, without attention, between the two that were measured around it. */
  passMs(rows) {
    const { passes } = this.#calibration;
    const above = passes.findIndex((pass) => pass.rows >= rows);
    if (above === 0) return passes[0].ms;
    if (above === -1) return (passes.at(-1).ms * rows) / passes.at(-1).rows;
    const [low, high] = [passes[above - 1], passes[above]];
    return low.ms + ((high.ms - low.ms) * (rows - low.rows)) / (high.rows - low.rows);
  }

  /**
   * From a request's arrival to its place in the queue: body, template, tokens.
   * @param computing replicas on the same machine, just now
   */
  requestMs(promptTokens, computing = 1) {
    const { request, slowdowns } = this.#calibration;
    const alone = request.fixedMs + promptTokens * request.tokenMs;
    return alone * slowdownOf(slowdowns.chunk, computing);
  }

  /** What a turn takes alone on a replica that has all but `rows` of its prompt. */
  turnMs({ rows, promptTokens, generatedTokens }) {
    const { attention } = this.#calibration;
    const chunks = Math.floor(rows / 512);
    return (
      this.requestMs(promptTokens) +
      chunks * this.passMs(512) +
      this.passMs(Math.max(rows % 512, 1)) +
      rows * promptTokens * attention.chunkMs +
      generatedTokens * (this.passMs(1) + promptTokens * attention.decodeMs)
    );
  }
}
