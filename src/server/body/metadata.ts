/** `metadata` of what is stored, within OpenAI's limits. */

import { optional, type Type } from "./field.ts";
import { fieldError, kindOf } from "./fields.ts";
import { record } from "./values.ts";

const maxEntries = 16;
const maxKeyLength = 64;
const maxValueLength = 512;

export type Metadata = Record<string, string>;

export const metadata: Type<Metadata> = {
  schema: {
    type: "object",
    additionalProperties: { type: "string", maxLength: maxValueLength },
    maxProperties: maxEntries,
  },
  remedy: `Send up to ${maxEntries} strings by name`,
  read(value, path, reading) {
    const entries = Object.entries(record(this.remedy).read(value, path, reading));
    if (entries.length > maxEntries)
      throw fieldError("invalid_value", path, `has ${entries.length} entries`, this.remedy);
    const texts = entries.map(([key, label]): [string, string] => {
      const field = `${path}.${key.slice(0, maxKeyLength)}`;
      if (typeof label !== "string") {
        const problem = `must be a string, not ${kindOf(label)}`;
        throw fieldError("invalid_type", field, problem, this.remedy);
      }
      if (key.length <= maxKeyLength && label.length <= maxValueLength) return [key, label];
      const limit = `Send names of up to ${maxKeyLength} and values of up to ${maxValueLength} characters`;
      throw fieldError("invalid_value", field, "is too long", limit);
    });
    return Object.fromEntries(texts);
  },
};

export const metadataField = optional(metadata, `up to ${maxEntries} strings`, {});
