/** Functions that every template may call. */

import type { RenderBudget } from "./budget.ts";
import { strftime } from "./library.ts";

/** The template itself said no, with `raise_exception`. */
export class TemplateRefusal extends TypeError {}

export function functionsWithin(budget: RenderBudget): Readonly<Record<string, unknown>> {
  return {
    raise_exception: (message: unknown): never => {
      throw new TemplateRefusal(typeof message === "string" ? message : "it gives no reason");
    },
    strftime_now: (format: unknown): string => {
      if (typeof format !== "string") throw new TypeError("strftime_now takes a text");
      budget.step(format.length);
      return strftime(format, new Date());
    },
    range: (first: unknown, last?: unknown, step: unknown = 1): number[] => {
      const [start, end] = last === undefined ? [0, first] : [first, last];
      if (!isInteger(start) || !isInteger(end) || !isInteger(step))
        throw new TypeError("range takes integers");
      const length = Math.max(0, Math.ceil((end - start) / step));
      budget.step(length);
      return Array.from({ length }, (_, index) => start + index * step);
    },
  };
}

function isInteger(value: unknown): value is number {
  return Number.isInteger(value);
}
