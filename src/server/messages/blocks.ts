/** Content blocks that are text: text, documents of text, search results. */

import { optional, required, type Type, fieldError } from "../body/field.ts";
import { notShown, unseen } from "../body/content-parts.ts";
import { isJsonObject } from "../../json.ts";
import { either, list, mapped, object, record, tagged, text } from "../body/values.ts";

const asString = "Send text as a string";
const someText = required(text({ remedy: asString }));
const showBlock = 'Send {"type": "text", "text": "…"}';
const showSource = 'Send {"type": "text", "media_type": "text/plain", "data": "…"}';

const blockOptions = {
  remedy: showBlock,
  others: {
    code: "unsupported_value" as const,
    problem: "is not a kind of block that is allowed here",
    remedy: "Send text blocks",
  },
};

const textBlock = mapped(
  object({ text: someText }, showBlock, "passed over"),
  (block) => block.text,
);

const refusedImage = {
  code: "image_not_supported" as const,
  problem: "is an image, and the model reads text only",
  remedy: "Send text blocks only",
};
const refusedSource = {
  code: "unsupported_value" as const,
  problem: "is not plain text",
  remedy: showSource,
};
const skippedSource = {
  warning: "is of a kind that is no text: the model reads a line that says so instead",
  remedy: showSource,
};

const imageLine = unseen(record(showBlock), ({ source }) => {
  const kind = isJsonObject(source) ? source["media_type"] : null;
  const isKnown = typeof kind === "string" && /^[\w.+/-]{1,60}$/.test(kind);
  return isKnown ? `an image (${kind})` : "an image";
});

/**
 * @param isResult of a tool, which the client can only pass on: in the place of what is no text stands a line that says
 *   so. Elsewhere it is refused.
 */
function plainBlocksOf({ isResult }: { isResult: boolean }) {
  const image: typeof imageLine | typeof refusedImage = isResult ? imageLine : refusedImage;
  const others: typeof skippedSource | typeof refusedSource = isResult
    ? skippedSource
    : refusedSource;
  const source = tagged(
    {
      text: mapped(object({ data: someText }, showSource, "passed over"), ({ data }) => data),
      content: mapped(
        object(
          { content: required(joined(tagged({ text: textBlock, image }, blockOptions))) },
          showSource,
          "passed over",
        ),
        (given) => given.content,
      ),
    },
    { remedy: showSource, others },
  );
  const document = object(
    { source: required(source), title: optional(text()), context: optional(text()) },
    showBlock,
    "passed over",
  );
  return {
    text: textBlock,
    document: mapped(document, ({ source: data, title = "", context = "" }) => {
      const said = data ?? notShown("a document");
      return [title, context, said].filter((part) => part !== "").join("\n");
    }),
    tool_reference: mapped(
      object({ tool_name: someText }, showBlock, "passed over"),
      (block) => block.tool_name,
    ),
    image,
  };
}

function textBlocksOf(place: { isResult: boolean }) {
  const plainBlocks = plainBlocksOf(place);
  return {
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
}

export const textBlocks = textBlocksOf({ isResult: false });

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

/** Texts of a tool's result. */
export const resultContent = content(tagged(textBlocksOf({ isResult: true }), blockOptions));
