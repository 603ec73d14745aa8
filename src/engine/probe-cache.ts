import { createHash } from "node:crypto";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";

/**
 * Remembers which models were probed with success: an empty file each in the user's cache folder, so
 * that processes need no lock. Where none can be written, nothing is remembered.
 */
export class ProbeCache {
  readonly #folder: string;

  constructor(folder = join(cacheHome(), "fermata", "probed")) {
    this.#folder = folder;
  }

  has(key: string): boolean {
    return existsSync(this.#file(key));
  }

  add(key: string): void {
    try {
      mkdirSync(this.#folder, { recursive: true });
      writeFileSync(this.#file(key), "");
    } catch {
      // The next start probes again.
    }
  }

  #file(key: string): string {
    return join(this.#folder, createHash("sha256").update(key).digest("hex"));
  }
}

function cacheHome(): string {
  return process.env["XDG_CACHE_HOME"] || join(homedir(), ".cache");
}
