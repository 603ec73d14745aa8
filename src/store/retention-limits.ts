/** How much a store keeps. */

export interface RetentionLimits {
  /** Responses of one owner. */
  maxCount: number;
  maxAgeSeconds: number;
  /** Of what is kept, without the room that deleted entries left for new ones. */
  maxBytes: number;
}

export interface StoreOptions {
  limits?: Partial<RetentionLimits> | undefined;
}

export const defaultLimits: RetentionLimits = {
  maxCount: 10_000,
  maxAgeSeconds: 30 * 24 * 3600,
  maxBytes: 1024 ** 3,
};

/** The limits are applied when a store opens and after so many new responses and runs. */
export const retentionEvery = 200;

/** How long the events of an ended response or run can be read again. Its output stays. */
export const eventsSeconds = 24 * 3600;

export function nowSeconds(): number {
  return Math.floor(Date.now() / 1000);
}
