/** What is to happen when: the earliest first, and of the same time the one that was added first. A binary heap. */
export class EventQueue {
  #heap = [];
  #added = 0;

  push(at, happens) {
    const heap = this.#heap;
    const event = { at, order: this.#added++, happens };
    let place = heap.length;
    while (place > 0) {
      const above = (place - 1) >> 1;
      if (isBefore(heap[above], event)) break;
      heap[place] = heap[above];
      place = above;
    }
    heap[place] = event;
  }

  /** The next event; undefined: there is none. */
  pop() {
    const heap = this.#heap;
    const first = heap[0];
    const last = heap.pop();
    if (heap.length > 0) this.#sink(last);
    return first;
  }

  #sink(event) {
    const heap = this.#heap;
    let place = 0;
    for (;;) {
      let below = 2 * place + 1;
      if (below >= heap.length) break;
      if (below + 1 < heap.length && isBefore(heap[below + 1], heap[below])) below += 1;
      if (isBefore(event, heap[below])) break;
      heap[place] = heap[below];
      place = below;
    }
    heap[place] = event;
  }
}

function isBefore(one, other) {
  return one.at < other.at || (one.at === other.at && one.order < other.order);
}
