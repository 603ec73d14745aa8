/** A stream to write to, with its colours and the line that stands for the present. */

interface ScreenStream {
  write(text: string): unknown;
  isTTY?: boolean;
  columns?: number;
}

const styles = { bold: 1, dim: 2, red: 31, green: 32, yellow: 33, cyan: 36 } as const;
export type Style = keyof typeof styles;

// oxlint-disable-next-line no-control-regex
const controls = /\u001b\[[0-?]*[ -/]*[@-~]|[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g;
const overrides = /[\u202a-\u202e\u2066-\u2069]/g;
const wide =
  /[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6]|\p{Extended_Pictographic}/u;

export class Screen {
  readonly isTerminal: boolean;
  readonly #stream: ScreenStream;
  readonly #hasColours: boolean;
  #atLineStart = true;
  #status = "";

  constructor(stream: ScreenStream, env: NodeJS.ProcessEnv) {
    this.#stream = stream;
    this.isTerminal = stream.isTTY === true;
    this.#hasColours = this.isTerminal && (env["NO_COLOR"] ?? "") === "" && env["TERM"] !== "dumb";
  }

  get columns(): number {
    return Math.max(this.#stream.columns ?? 80, 20);
  }

  /**
   * What a model or a tool wrote. On a terminal it may draw nothing but its characters; elsewhere it
   * is left as it is.
   */
  foreign(text: string): string {
    return this.isTerminal ? text.replaceAll(controls, "").replaceAll(overrides, "") : text;
  }

  style(style: Style, text: string): string {
    return this.#hasColours && text !== "" ? `\u001b[${styles[style]}m${text}\u001b[0m` : text;
  }

  write(text: string): void {
    if (text === "") return;
    this.status("");
    this.#stream.write(text);
    this.#atLineStart = text.endsWith("\n");
  }

  /** On a line of its own. */
  line(text = ""): void {
    this.startLine();
    this.write(`${text}\n`);
  }

  startLine(): void {
    if (!this.#atLineStart) this.write("\n");
  }

  /** What goes on now: a line that the next output replaces. Only on a terminal, and between lines. */
  status(text: string): void {
    if (!this.isTerminal || (text === "" && this.#status === "")) return;
    if (text !== "" && !this.#atLineStart) return;
    this.#status = text;
    const shown = this.style("dim", this.clip(text, this.columns - 1));
    this.#stream.write(`\r${shown}\u001b[K`);
  }

  /** One line of at most so many columns; three dots for what is left out. */
  clip(text: string, columns: number): string {
    const flat = this.foreign(text).replaceAll(/\s+/g, " ");
    let used = 0;
    let end = 0;
    for (const character of flat) {
      used += wide.test(character) ? 2 : 1;
      if (used > columns) {
        const kept = Array.from(flat.slice(0, end));
        return `${kept.slice(0, Math.max(kept.length - 3, 0)).join("")}...`;
      }
      end += character.length;
    }
    return flat;
  }
}
