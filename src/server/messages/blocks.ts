/** Content blocks that are text: text, documents of plain text, search results. */

import { required, type Type, fieldError } from "../body/field.ts";
import { isJsonObject } from "../../json.ts";
import { either, list, mapped, object, tagged, text } from "../body/values.ts";

const asString = "Send text as a string";
const someText = required(text({ remedy: asString }));
const showBlock = 'Send {"type": "text", "text": "…"}';
const showSource = 'Send {"type": "text", "media_type": "text/plain", "data": "…"}';

const source = tagged(
  { text: object({ data: someText }, showSource, "passed over") },
  {
    remedy: showSource,
    others: { code: "unsupported_value", problem: "is not plain text", remedy: showSource },
  },
);

const plainBlocks = {
  text: mapped(object({ text: someText }, showBlock, "passed over"), (block) => block.text),
  document: mapped(
    object({ source: required(source) }, showBlock, "passed over"),
    (block) => block.source.data,
  ),
  tool_reference: mapped(
    object({ tool_name: someText }, showBlock, "passed over"),
    (block) => block.tool_name,
  ),
  image: {
    code: "image_not_supported" as const,
    problem: "is an image, and the model reads text only",
    remedy: "Send text blocks only",
  },
};
const blockOptions = {
  remedy: showBlock,
  others: {
    code: "unsupported_value" as const,
    problem: "is not a kind of block that is allowed here",
    remedy: "Send text blocks",
  },
};

export const textBlocks = {
  ...plainBlocks,
  search_result: mapped(
    object(
      {
        title: someText,
        source: someText,
        content: required(joined(tagged(plainBlocks, blockOptions))),
      },
      showBlock,
      "passed over",
    ),
    (block) => `${block.title}\n${block.source}\n${block.content}`,
  ),
};

/** Blocks of these kinds; what looks like a tool's result must say that it is one. */
export function blocksOf<Kinds extends Parameters<typeof tagged>[0]>(kinds: Kinds) {
  const blocks = tagged(kinds, blockOptions);
  const block: typeof blocks = {
    ...blocks,
    read(value, path, reading) {
      const isResult = isJsonObject(value) && typeof value["tool_use_id"] === "string";
      if (!isResult || value["type"] !== undefined) return blocks.read(value, path, reading);
      const remedy = 'Send "tool_result": without it a model would not see the result';
      throw fieldError("missing_field", `${path}.type`, "is missing", remedy);
    },
  };
  return content(block);
}

/** A string stands for one block of text. */
function content<Block>(block: Type<Block>): Type<(Block | string)[]> {
  return either(
    {
      string: mapped(text(), (value): (Block | string)[] => [value]),
      array: list(block, { remedy: asString }),
    },
    "a string or an array of content blocks",
    asString,
  );
}

function joined(block: Type<string>): Type<string> {
  return mapped(content(block), (texts) => texts.join("\n"));
}

/** Texts of its blocks. */
export const textContent = content(tagged(textBlocks, blockOptions));
