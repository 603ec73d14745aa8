/** How long work takes: one line that is written over on a terminal, a line now and then elsewhere. */

/** `4.7 GB`, in powers of ten as disks and networks have it. */
export function bytesText(bytes: number): string {
  const units = ["bytes", "kB", "MB", "GB", "TB"];
  let value = bytes;
  let unit = 0;
  while (value >= 999.5 && unit < units.length - 1) {
    value /= 1000;
    unit += 1;
  }
  const digits = unit === 0 || value >= 100 ? 0 : 1;
  return `${value.toFixed(digits)} ${units[unit]}`;
}

/** `2 h 05 min`, `3 min 20 s`, `12 s` */
function durationText(seconds: number): string {
  const whole = Math.ceil(seconds);
  const two = (value: number): string => String(value).padStart(2, "0");
  if (whole >= 3600)
    return `${Math.floor(whole / 3600)} h ${two(Math.floor((whole % 3600) / 60))} min`;
  if (whole >= 60) return `${Math.floor(whole / 60)} min ${two(whole % 60)} s`;
  return `${whole} s`;
}

export interface ProgressOutput {
  write(text: string): void;
  isTerminal: boolean;
  /** Of the terminal, now. */
  columns(): number;
}

const terminalEveryMs = 200;
const plainEveryMs = 10_000;
/** The rate is that of the last seconds. */
const windowMs = 5000;

export class TransferProgress {
  readonly #output: ProgressOutput;
  readonly #totalBytes: number;
  readonly #now: () => number;
  readonly #samples: { at: number; bytes: number }[] = [];
  #saidAt = -Infinity;
  #isLineOpen = false;

  constructor(output: ProgressOutput, totalBytes: number, now = (): number => performance.now()) {
    this.#output = output;
    this.#totalBytes = totalBytes;
    this.#now = now;
  }

  /** `label` says what is under way; `bytes` are here, of all. */
  update(label: string, bytes: number): void {
    const at = this.#now();
    this.#samples.push({ at, bytes });
    while (this.#samples.length > 2 && at - this.#samples[0]!.at > windowMs) this.#samples.shift();
    const { isTerminal } = this.#output;
    if (at - this.#saidAt < (isTerminal ? terminalEveryMs : plainEveryMs)) return;
    this.#saidAt = at;
    const text = this.#text(label, bytes);
    if (!isTerminal) {
      this.#output.write(`${text}\n`);
      return;
    }
    this.#output.write(`\r${text.slice(0, Math.max(this.#output.columns() - 1, 10))}\u001b[K`);
    this.#isLineOpen = true;
  }

  /** A line of its own. */
  note(text: string): void {
    this.end();
    this.#output.write(`${text}\n`);
  }

  /** Removes the line. */
  end(): void {
    if (this.#isLineOpen) this.#output.write("\r\u001b[K");
    this.#isLineOpen = false;
  }

  #text(label: string, bytes: number): string {
    const percent = this.#totalBytes === 0 ? 100 : Math.floor((bytes / this.#totalBytes) * 100);
    const parts = [`${label}: ${percent}%, ${bytesText(bytes)} of ${bytesText(this.#totalBytes)}`];
    const rate = this.#rate();
    if (rate > 0) {
      parts.push(`${bytesText(rate)}/s`);
      parts.push(`${durationText((this.#totalBytes - bytes) / rate)} left`);
    }
    return parts.join(", ");
  }

  /** Bytes a second. */
  #rate(): number {
    const [first, last] = [this.#samples[0], this.#samples.at(-1)];
    if (first === undefined || last === undefined || last.at <= first.at) return 0;
    return ((last.bytes - first.bytes) * 1000) / (last.at - first.at);
  }
}

export interface Progress {
  /** `fraction` is from 0 to 1. */
  readonly update: (fraction: number) => void;
  /** Removes the line. */
  end(): void;
}

/** One line that is written over, on a terminal; nothing elsewhere. */
export function createProgress(stream: NodeJS.WriteStream): Progress {
  let shown = -1;
  return {
    update: (fraction) => {
      const percent = Math.floor(fraction * 100);
      if (!stream.isTTY || percent === shown) return;
      shown = percent;
      stream.write(`\rLoading the model: ${percent}%`);
    },
    end: () => {
      if (shown >= 0) stream.write("\r\u001b[K");
    },
  };
}
