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
