/**
 * Folders whose fermata.json may run and open things. A cloned folder's file is another person's words:
 * until the user trusts them, they may only set limits and speed. Trust is bound to the content, so that
 * a later pull needs a new consent.
 */

import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { type ConfigKind, readConfigFile } from "../config-reader.ts";
import type { Layer } from "./options/option-values.ts";
import { userFolder } from "./folders.ts";

const kind: ConfigKind = { title: "Trusted folders ", code: "invalid_option" };

/** Files that a fermata.json names and that say what is run, too: consent covers what they hold. */
const namedFiles = ["mcpConfig", "agents", "chatTemplate"];

/** Of the text of a fermata.json and of the files that it names. */
export function contentDigest(text: string, values: Layer): string {
  const hash = createHash("sha256").update(text);
  for (const key of namedFiles) {
    const path = values.get(key);
    if (typeof path === "string") hash.update(`\0${key}\0`).update(fileDigest(path));
  }
  return hash.digest("hex");
}

function fileDigest(path: string): Buffer {
  const hash = createHash("sha256");
  try {
    return hash.update(readFileSync(path)).digest();
  } catch {
    // Once there is a file, it needs a consent of its own.
    return Buffer.alloc(0);
  }
}

export class TrustedFolders {
  readonly #path: string;

  /** @param env says where the user's configuration is */
  constructor(env: NodeJS.ProcessEnv) {
    this.#path = join(userFolder("config", env), "trusted.json");
  }

  /** Folders by their real paths, each with the digest that it was trusted with. @throws FermataError */
  all(): Record<string, string> {
    return existsSync(this.#path) ? readConfigFile(kind, this.#path).textsByName() : {};
  }

  add(folder: string, digest: string): void {
    this.#write({ ...this.all(), [folder]: digest });
  }

  /** False: it was not trusted. */
  remove(folder: string): boolean {
    const { [folder]: digest, ...others } = this.all();
    if (digest !== undefined) this.#write(others);
    return digest !== undefined;
  }

  /** Nobody else may write consents; whole or not at all. */
  #write(folders: Record<string, string>): void {
    mkdirSync(dirname(this.#path), { recursive: true, mode: 0o700 });
    const draft = `${this.#path}.${process.pid}`;
    writeFileSync(draft, `${JSON.stringify(folders, null, 2)}\n`, { mode: 0o600 });
    renameSync(draft, this.#path);
  }
}
