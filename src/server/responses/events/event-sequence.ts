/** Numbers a stream's events and holds them to the grammars: an illegal one is a fault of ours. */

import { FermataError } from "../../../errors.ts";
import type { UnnumberedEvent, WireEvent } from "../types.ts";
import { customToolCallGrammar } from "./custom-tool-call-events.ts";
import { functionCallGrammar } from "./function-call-events.ts";
import { added, done, type ItemGrammar } from "./grammar.ts";
import { mcpApprovalGrammar } from "./mcp-approval-events.ts";
import { mcpCallGrammar } from "./mcp-call-events.ts";
import { mcpListToolsGrammar } from "./mcp-list-tools-events.ts";
import { messageGrammar } from "./message-events.ts";
import { reasoningGrammar } from "./reasoning-events.ts";

const grammars = new Map<string, ItemGrammar>(
  [
    messageGrammar,
    reasoningGrammar,
    functionCallGrammar,
    customToolCallGrammar,
    mcpCallGrammar,
    mcpListToolsGrammar,
    mcpApprovalGrammar,
  ].map((grammar) => [grammar.item, grammar]),
);

interface OpenItem {
  grammar: ItemGrammar;
  last: string;
}

export class EventSequence {
  #next = 0;
  #ended = false;
  #addedCount = 0;
  readonly #open = new Map<number, OpenItem>();

  /** An event of the response as a whole. */
  lifecycle(type: string, rest: object): WireEvent {
    return this.#number({ type, ...rest });
  }

  /** The one after which nothing comes. Calls that nobody answered may be open if `gaveUp`. */
  terminal(type: string, rest: object, gaveUp = false): WireEvent {
    if (this.#open.size > 0 && !gaveUp) throw fault(type, "comes while an item is open");
    const event = this.#number({ type, ...rest });
    this.#ended = true;
    return event;
  }

  /** Events of the item at `outputIndex`, in order. */
  item(outputIndex: number, events: readonly UnnumberedEvent[]): WireEvent[] {
    return events.map((event) => {
      this.#follow(outputIndex, event);
      return this.#number(event);
    });
  }

  #follow(outputIndex: number, event: UnnumberedEvent): void {
    const { type } = event;
    if (type === added) {
      const grammar = grammars.get((event["item"] as { type: string }).type);
      if (grammar === undefined || outputIndex !== this.#addedCount)
        throw fault(type, "adds no item that may come now");
      this.#addedCount++;
      this.#open.set(outputIndex, { grammar, last: type });
      return;
    }
    const open = this.#open.get(outputIndex);
    if (open === undefined || open.grammar.follows[open.last]?.includes(type) !== true)
      throw fault(type, `may not follow ${open?.last ?? "a closed item"}`);
    open.last = type;
    if (type === done) this.#open.delete(outputIndex);
  }

  #number({ type, ...rest }: UnnumberedEvent): WireEvent {
    if (this.#ended) throw fault(type, "comes after the end");
    return { type, sequence_number: this.#next++, ...rest };
  }
}

function fault(type: string, problem: string): FermataError {
  return new FermataError("internal_error", `The event ${type} ${problem}.`);
}
