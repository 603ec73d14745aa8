export type ProxyKind = "haproxy" | "nginx";
/** The path of the program, with what its configuration needs; null: it is not installed. */
export function findProxy(kind: ProxyKind): string | null;
/** A port that was free a moment ago. */
export function freePort(): Promise<number>;
/** @param ports of the replicas r1 to r3 */
export function startProxy(
  kind: ProxyKind,
  ports: readonly number[],
  options?: { isByPrefix?: boolean },
): Promise<{ url: string; stop(): Promise<void> }>;
