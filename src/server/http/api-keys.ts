/** The keys that may call, and what each may do. */

import { createHash, timingSafeEqual } from "node:crypto";

/**
 * `infer`: generate, and use what this key stored. `tools`: let the server run its tools and agents. `admin`: see what
 * everybody's requests do to the engine.
 */
export const keyScopes = ["infer", "tools", "admin"] as const;
export type KeyScope = (typeof keyScopes)[number];

export interface ApiKey {
  key: string;
  /** Keys of one name, one after the other, are one owner. Null: the key is its own owner. */
  name: string | null;
  scopes: readonly KeyScope[];
  /** Milliseconds since 1970. Null: never. */
  expiresAt: number | null;
}

interface KnownKey extends Omit<ApiKey, "key"> {
  hash: Buffer;
  /** A hash of its name, or of the key. */
  owner: string;
}

export class ApiKeys {
  #known: readonly KnownKey[] = [];
  /** Whether callers need a key. A file that has lost all its keys opens nothing. */
  readonly areNeeded: boolean;

  constructor(keys: readonly ApiKey[], areNeeded = keys.length > 0) {
    this.areNeeded = areNeeded;
    this.replace(keys);
  }

  /** Keys without name, limits and end. */
  static of(keys: readonly string[]): ApiKeys {
    return new ApiKeys(keys.map(plainKey));
  }

  replace(keys: readonly ApiKey[]): void {
    this.#known = keys.map(({ key, ...rest }) => {
      const hash = hashOf(key);
      const owner = rest.name === null ? hash : hashOf(`name ${rest.name}`);
      return { ...rest, hash, owner: owner.toString("hex") };
    });
  }

  /** Compares with all keys, so the time does not show which one is equal. */
  withKey(key: string): KnownKey | "expired" | null {
    const hash = hashOf(key);
    const known = this.#known.filter((candidate) => timingSafeEqual(candidate.hash, hash))[0];
    return known === undefined ? null : (valid(known) ?? "expired");
  }

  /** For tokens that this server sealed. */
  ofOwner(owner: string): KnownKey | null {
    return valid(this.#known.find((known) => known.owner === owner));
  }

  /** Whether the server runs tools for requests of this owner. */
  mayRunTools(owner: string): boolean {
    return !this.areNeeded || this.ofOwner(owner)?.scopes.includes("tools") === true;
  }
}

export function plainKey(key: string): ApiKey {
  return { key, name: null, scopes: keyScopes, expiresAt: null };
}

function valid(known: KnownKey | undefined): KnownKey | null {
  if (known === undefined) return null;
  return known.expiresAt === null || known.expiresAt > Date.now() ? known : null;
}

function hashOf(text: string): Buffer {
  return createHash("sha256").update(text).digest();
}
