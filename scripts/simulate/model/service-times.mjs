import { slowdownBeside } from "./host.mjs";

/** What things take on the machine of a calibration; see calibrate.mjs for its fields. Milliseconds. */
export class ServiceTimes {
  #calibration;

  constructor(calibration) {
    this.#calibration = calibration;
  }

  /**
   * One step: its passes over the weights, attention to what is in the cache, cells that were moved, its tokens sent.
   * @returns its kind, what it takes alone, and how many times as long beside others of its machine (`slowdownBeside`)
   */
  stepOf({ passes, decodeAttended, chunkAttended, movedBytes, tokens }) {
    const { attention, movedBytesPerMs, token, slowdowns } = this.#calibration;
    const weights = passes.reduce((total, rows) => total + this.passMs(rows), 0);
    const computed =
      weights +
      decodeAttended * attention.decodeMs +
      chunkAttended * attention.chunkMs +
      movedBytes / movedBytesPerMs;
    const sent = tokens * token.sentMs;
    const kind = chunkAttended > 0 ? "chunk" : "decode";
    const milliseconds = computed + sent;
    const slowdown = (others) => {
      const oneThread = this.#oneThread(1 + others.chunk + others.decode);
      const both = computed * slowdownBeside(slowdowns[kind], others) + sent * oneThread;
      return both / milliseconds;
    };
    return { kind, milliseconds, slowdown };
  }

  /** Work of one thread has a core to itself until there are more replicas than cores. */
  #oneThread(computing) {
    return Math.max(computing / this.#calibration.machine.cores, 1);
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
    const { request } = this.#calibration;
    const alone = request.fixedMs + promptTokens * request.tokenMs;
    return alone * this.#oneThread(computing);
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
