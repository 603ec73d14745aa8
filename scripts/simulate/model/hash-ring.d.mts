export function prefixKey(system: string, model?: string): string;
export interface RingServer {
  isAlive: boolean;
  served: number;
}
export class HashRing<Server extends RingServer> {
  constructor(servers: readonly Server[]);
  choose(text: string, factor: number): Server | undefined;
}
