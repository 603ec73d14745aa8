/** The ids of calls, for a template that wants others than ours. */

import { createHash } from "node:crypto";
import type { CallPart, CallSyntax } from "../../guidance/call-syntax.ts";
import type { TemplateShape } from "./template-shape.ts";

interface NamedCall {
  id: string;
  name: string;
}

/** Of one rendering. Calls are told in their order. */
export class CallIds {
  readonly #wantsShortIds: boolean;
  /** Name and number as the model writes them in a call, where the template shows them as the call's id. */
  readonly #parts: readonly CallPart[];
  readonly #written = new Map<string, string>();
  #count = 0;

  constructor({ wantsShortIds, showsIdsAsNames }: TemplateShape, { body }: CallSyntax) {
    this.#wantsShortIds = wantsShortIds;
    this.#parts = showsIdsAsNames ? namedId(body) : [];
  }

  ofCall({ id, name }: NamedCall): string {
    const written = this.#parts.length === 0 ? this.#ofId(id) : this.#ofName(id, name);
    this.#count += 1;
    this.#written.set(id, written);
    return written;
  }

  ofResult(id: string): string {
    return this.#written.get(id) ?? this.#ofId(id);
  }

  #ofId(id: string): string {
    if (!this.#wantsShortIds || /^[A-Za-z0-9]{9}$/u.test(id)) return id;
    return createHash("sha256").update(id).digest("hex").slice(0, 9);
  }

  /** A client's own id of this form stays. */
  #ofName(id: string, name: string): string {
    const write = (number: string): string =>
      this.#parts
        .map((part) => (typeof part === "string" ? part : part.part === "name" ? name : number))
        .join("");
    const [number = ""] = /\d+$/u.exec(id) ?? [];
    return number !== "" && id === write(number) ? id : write(String(this.#count));
  }
}

/** What ends at a call's number and has the name in it. Empty: there is no such thing. */
function namedId(body: readonly CallPart[]): readonly CallPart[] {
  const isPart = (kind: string) => (part: CallPart) =>
    typeof part !== "string" && part.part === kind;
  const id = body.slice(0, body.findIndex(isPart("id")) + 1);
  return id.some(isPart("name")) ? id : [];
}
