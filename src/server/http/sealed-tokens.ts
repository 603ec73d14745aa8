/**
 * Tokens that stand for an API key where none can be sent: in a cookie, or in the address of an
 * EventSource. What is in them is readable and changeable for the holder of the secret only.
 */

import { createCipheriv, createDecipheriv, randomBytes } from "node:crypto";

export type TokenKind = "session" | "stream";

export interface TokenClaims {
  kind: TokenKind;
  /** As `FastifyRequest.owner`. */
  owner: string;
  /** Unix seconds. */
  expiresAt: number;
}

const ivBytes = 12;
const tagBytes = 16;
const cipherName = "aes-256-gcm";

export class SealedTokens {
  readonly #secret: Buffer;

  /** @param secret 32 bytes */
  constructor(secret: Buffer) {
    this.#secret = secret;
  }

  seal(claims: TokenClaims): string {
    const iv = randomBytes(ivBytes);
    const cipher = createCipheriv(cipherName, this.#secret, iv);
    const sealed = [cipher.update(JSON.stringify(claims), "utf8"), cipher.final()];
    return Buffer.concat([iv, cipher.getAuthTag(), ...sealed]).toString("base64url");
  }

  /** Null: not one of ours, of another kind, or expired. */
  open(token: string, kind: TokenKind): TokenClaims | null {
    const bytes = Buffer.from(token, "base64url");
    if (bytes.length <= ivBytes + tagBytes) return null;
    try {
      const cipher = createDecipheriv(cipherName, this.#secret, bytes.subarray(0, ivBytes));
      cipher.setAuthTag(bytes.subarray(ivBytes, ivBytes + tagBytes));
      const sealed = bytes.subarray(ivBytes + tagBytes);
      const text = Buffer.concat([cipher.update(sealed), cipher.final()]).toString("utf8");
      const claims = JSON.parse(text) as TokenClaims;
      return claims.kind === kind && claims.expiresAt * 1000 > Date.now() ? claims : null;
    } catch {
      return null;
    }
  }
}
