/** Content of messages as OpenAI's clients send it: text, or parts of which only those of text reach the model. */

import { required, type Type, withoutIndices } from "./field.ts";
import { either, list, mapped, object, record, tagged, text } from "./values.ts";

const textRemedy = "Send the part's text as a string";
const textOnly = "Send text parts only";
export const notText = (type: string) => ({
  code: "unsupported_value" as const,
  problem: `is "${type}", and the model reads text only`,
  remedy: textOnly,
});
export const imagePart = {
  code: "image_not_supported" as const,
  problem: "is an image, and the model reads text only",
  remedy: textOnly,
};

/** In the place of what is no text. */
export function notShown(what: string): string {
  return `[${what}, which the model cannot see]`;
}

/**
 * Of a tool's result, which the client only passes on: it cannot do without the image, and a refusal would end its
 * session. So a line says that there is one.
 */
export function unseen<Value>(type: Type<Value>, what: (value: Value) => string): Type<string> {
  return mapped(type, (value, path, reading) => {
    reading.warn(withoutIndices(path), "is no text: the model reads a line that says so instead");
    return notShown(what(value));
  });
}

const unseenPart = (what: string) => unseen(record(textOnly), () => what);

export function textPart(key: "text" | "refusal"): Type<string> {
  const fields = { [key]: required(text({ remedy: textRemedy })) };
  return mapped(object(fields, textRemedy, "passed over"), (part) => part[key]!);
}

const textParts = { text: textPart("text"), refusal: textPart("refusal") };
const otherParts = {
  remedy: 'Send {"type": "text", "text": "…"}',
  others: {
    code: "invalid_value" as const,
    problem: "is not a known kind of part",
    remedy: 'Send "text"',
  },
};

/** Text parts are joined by newlines. */
const contentOf = (part: Type<string>) =>
  either(
    {
      string: text(),
      array: mapped(list(part, { remedy: "Send text as a string" }), (parts) => parts.join("\n")),
    },
    "a string or an array of parts",
    "Send text as a string",
  );

export const content = contentOf(
  tagged(
    {
      ...textParts,
      image_url: imagePart,
      input_image: imagePart,
      input_audio: notText("input_audio"),
      file: notText("file"),
    },
    otherParts,
  ),
);

export const resultContent = contentOf(
  tagged(
    {
      ...textParts,
      image_url: unseenPart("an image"),
      input_image: unseenPart("an image"),
      input_audio: unseenPart("audio"),
      file: unseenPart("a file"),
    },
    otherParts,
  ),
);
