// A pseudo-terminal with a command in it, driven as a person does: by keys, and by what is on the screen.
import { spawn, spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../..", import.meta.url));
const helper = fileURLToPath(new URL("pseudo_terminal.py", import.meta.url));

/** Before the test's own limit, which could not say what was on the screen. */
const longestWaitMs = 60_000;

export const hasPython = spawnSync("python3", ["-c", "import pty"]).status === 0;

export interface DrivenTerminal {
  send(text: string): void;
  resize(columns: number, rows: number): void;
  /** As a person closes its window: the system sends SIGHUP. */
  close(): void;
  /** Waits for what comes after everything that was waited for before. */
  expect(pattern: RegExp | string): Promise<string>;
  /** All output so far, as it came. */
  raw(): string;
  exitCode: Promise<number | null>;
}

/** `fermata …`, from dist/. */
export function openTerminal(
  args: readonly string[],
  {
    columns = 100,
    rows = 30,
    env = {},
  }: { columns?: number; rows?: number; env?: NodeJS.ProcessEnv } = {},
): DrivenTerminal {
  const command = [process.execPath, "dist/cli/main.js", ...args];
  const child = spawn("python3", [helper, String(columns), String(rows), ...command], {
    cwd: root,
    env: { ...process.env, TERM: "xterm-256color", NO_COLOR: "", ...env },
    stdio: ["pipe", "pipe", "inherit"],
  });
  let output = "";
  let position = 0;
  let wake = (): void => {};
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    output += text;
    wake();
  });
  const exitCode = new Promise<number | null>((resolve) => child.once("exit", resolve));
  let ended = false;
  void exitCode.then(() => {
    ended = true;
    wake();
  });
  const order = (value: object): void => void child.stdin.write(`${JSON.stringify(value)}\n`);
  return {
    send: (text) => order({ send: text }),
    resize: (columns_, rows_) => order({ resize: [columns_, rows_] }),
    close: () => order({ close: true }),
    raw: () => output,
    exitCode,
    async expect(pattern) {
      const wanted = typeof pattern === "string" ? new RegExp(escape(pattern)) : pattern;
      for (;;) {
        const match = wanted.exec(output.slice(position));
        if (match !== null) {
          position += match.index + match[0].length;
          return match[0];
        }
        if (ended)
          throw new Error(`The command ended without ${wanted}:\n${output.slice(position)}`);
        const inTime = await new Promise<boolean>((resolve) => {
          const timer = setTimeout(() => resolve(false), longestWaitMs);
          wake = () => {
            clearTimeout(timer);
            resolve(true);
          };
        });
        if (!inTime)
          throw new Error(`Still no ${wanted}:\n${JSON.stringify(output.slice(position))}`);
      }
    },
  };
}

function escape(text: string): string {
  return text.replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&");
}
