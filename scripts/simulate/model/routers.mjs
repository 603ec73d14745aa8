// Which replica gets a turn. All but `leastLoaded` keep a conversation where it was, as long as that replica lives.
import { HashRing } from "./hash-ring.mjs";

/** As `hash-balance-factor` in packaging/haproxy.cfg: a new conversation goes past replicas with half as much again to do. */
const balanceFactor = 150;

/** Follows each conversation; where new ones go is the choice of `place`. */
class Sticky {
  #places = new Map();
  #place;

  constructor(place) {
    this.#place = place;
  }

  choose({ session }) {
    const known = this.#places.get(session);
    if (known?.isAlive) return known;
    const chosen = this.#place(session);
    this.#places.set(session, chosen);
    return chosen;
  }

  forget(session) {
    this.#places.delete(session);
  }
}

function leastServed(replicas) {
  const alive = replicas.filter(({ isAlive }) => isAlive);
  return alive.reduce((least, replica) => (replica.served < least.served ? replica : least));
}

/** Takes turns among those with the least to do, as `balance leastconn`. */
class LeastLoaded {
  #replicas;
  #last = 0;

  constructor(replicas) {
    this.#replicas = replicas;
  }

  choose() {
    const behind = this.#last + 1;
    const turned = [...this.#replicas.slice(behind), ...this.#replicas.slice(0, behind)];
    const chosen = leastServed(turned);
    this.#last = this.#replicas.indexOf(chosen);
    return chosen;
  }

  forget() {}
}

export const routers = {
  /** Every turn to the replica with the fewest requests, wherever its conversation was. */
  leastLoaded: (replicas) => new LeastLoaded(replicas),
  /** New conversations by the hash of their system prompt alone. */
  affinity: (replicas) => {
    const ring = new HashRing(replicas);
    return new Sticky(({ prefix }) => ring.choose(prefix, 0));
  },
  /** By the hash, but past replicas that have too much to do: packaging/haproxy.cfg. */
  bounded: (replicas) => {
    const ring = new HashRing(replicas);
    return new Sticky(({ prefix }) => ring.choose(prefix, balanceFactor));
  },
};
