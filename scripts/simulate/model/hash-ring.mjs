// HAProxy's consistent hashing: `hash-type consistent sdbm avalanche` with `hash-balance-factor`, so that conversations
// go where packaging/haproxy.cfg sends them.

import { createHash } from "node:crypto";

const nodesPerServer = 16;
/** Of a server's number in the hash of its nodes. */
const serverStride = 4096;

/** Bob Jenkins' hash of 32 bits with full avalanche, spread once more by a prime, as HAProxy's full_hash(). */
function avalanche(value) {
  let hash = value | 0;
  hash = (hash + 0x7ed55d16 + (hash << 12)) | 0;
  hash = hash ^ 0xc761c23c ^ (hash >>> 19);
  hash = (hash + 0x165667b1 + (hash << 5)) | 0;
  hash = ((hash + 0xd3a2646c) | 0) ^ (hash << 9);
  hash = (hash + 0xfd7046c5 + (hash << 3)) | 0;
  hash = hash ^ 0xb55a4f09 ^ (hash >>> 16);
  return Math.imul(hash, 3221225473) >>> 0;
}

function hashOf(text) {
  let hash = 0;
  for (const byte of Buffer.from(text)) hash = (byte + (hash << 6) + (hash << 16) - hash) | 0;
  return avalanche(hash);
}

/** What packaging/haproxy.cfg hashes of a new conversation without an API key. */
export function prefixKey(system, model = "default") {
  return createHash("sha1").update(`||${model}|${system}`).digest("hex").toUpperCase();
}

export class HashRing {
  #nodes;
  #servers;

  constructor(servers) {
    this.#servers = servers;
    this.#nodes = servers
      .flatMap((server, index) =>
        Array.from({ length: nodesPerServer }, (_, node) => ({
          key: avalanche((index + 1) * serverStride + node),
          server,
          index,
        })),
      )
      .toSorted((a, b) => a.key - b.key);
  }

  /**
   * The server nearest to the text that is alive and has, with a factor, at most so many percent of the average to do.
   * @param factor 0: no bound
   */
  choose(text, factor) {
    const alive = this.#servers.filter(({ isAlive }) => isAlive).length;
    const served = factor > 0 ? this.#servers.reduce((sum, server) => sum + server.served, 0) : 0;
    const places = Math.floor(((served + 1) * factor + 99) / 100);
    const isEligible = ({ server, index }) =>
      server.isAlive && (factor === 0 || server.served < shareOf(places, index, alive));
    const first = this.#nearest(hashOf(text));
    for (let step = 0; step < this.#nodes.length; step++) {
      const node = this.#nodes[(first + step) % this.#nodes.length];
      if (isEligible(node)) return node.server;
    }
    return undefined;
  }

  /** The node before the hash or the one behind it, whichever is nearer. */
  #nearest(hash) {
    const nodes = this.#nodes;
    let [low, high] = [0, nodes.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (nodes[middle].key < hash) low = middle + 1;
      else high = middle;
    }
    const next = low % nodes.length;
    const before = (next + nodes.length - 1) % nodes.length;
    const distance = (from, to) => (to - from) >>> 0;
    return distance(nodes[before].key, hash) <= distance(hash, nodes[next].key) ? before : next;
  }
}

/** What a server may serve of all places: the same for each, and what is left one by one; never none. */
function shareOf(places, index, servers) {
  const whole = nodesPerServer * Math.floor(places / (nodesPerServer * servers));
  const rest = places % (nodesPerServer * servers);
  const upTo = (count) => Math.floor((count * rest) / servers);
  return Math.max(whole + upTo(index + 1) - upTo(index), 1);
}
