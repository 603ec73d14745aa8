/**
 * Ends processes that would outlive this one. A handler cannot: SIGKILL and an abort run none. So a small
 * shell watches from outside. It reads which processes to end from its standard input. When that closes,
 * however this process ended, it gives them a second to leave and kills them.
 */

import { type ChildProcess, spawn } from "node:child_process";

/** Of `kill`: a process id, or minus the id of a process group. */
type Target = number;

/** Its lines are `+ target` and `- target`. The signals of a terminal do not end it. */
const script = `trap '' HUP INT TERM
targets=' '
while read -r sign target; do
  case $sign in
    +) targets="$targets$target " ;;
    -) targets="\${targets%% $target *} \${targets#* $target }" ;;
  esac
done
sleep 1
for target in $targets; do kill -s KILL -- "$target"; done`;

export class ProcessGuard {
  readonly #targets = new Set<Target>();
  #shell: ChildProcess | null = null;

  constructor() {
    process.once("exit", () => {
      for (const target of this.#targets) kill(target);
    });
  }

  /** From now on the target ends with this process. */
  add(target: Target): void {
    // -1 stands for all processes.
    if (Math.abs(target) <= 1) return;
    this.#targets.add(target);
    if (process.platform === "win32") return;
    if (this.#shell === null) this.#start();
    else this.#tell(`+ ${target}\n`);
  }

  /** The target has ended; its id may become another's. */
  remove(target: Target): void {
    if (this.#targets.delete(target)) this.#tell(`- ${target}\n`);
  }

  #start(): void {
    const shell = spawn("/bin/sh", ["-c", script], {
      stdio: ["pipe", "ignore", "ignore"],
      cwd: "/",
      env: { PATH: "/usr/bin:/bin" },
      // A group of its own: signals to ours do not reach it.
      detached: true,
    });
    this.#shell = shell;
    // The next target starts another one, for all.
    const forget = (): void => {
      if (this.#shell === shell) this.#shell = null;
    };
    shell.once("error", forget);
    shell.once("exit", forget);
    shell.stdin.on("error", forget);
    this.#tell([...this.#targets].map((target) => `+ ${target}\n`).join(""));
    // It keeps this process from nothing.
    shell.unref();
    (shell.stdin as unknown as { unref(): void }).unref();
  }

  #tell(lines: string): void {
    this.#shell?.stdin?.write(lines);
  }
}

function kill(target: Target): void {
  try {
    process.kill(target, "SIGKILL");
  } catch {
    // Already gone.
  }
}
