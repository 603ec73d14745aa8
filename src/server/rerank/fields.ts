/** Fields of POST /v1/rerank and /v1/score. */

import { optional, required, type FieldTable } from "../body/field.ts";
import { noKeepAlive } from "../body/keep-alive.ts";
import { boolean, either, integer, list, object, text } from "../body/values.ts";

/** As many as a request for embeddings may have. */
const maxDocuments = 2048;
const remedy = 'Send a list of texts, or of {"text": "…"}';

const document = either(
  {
    string: text({ remedy }),
    object: object({ text: optional(text({ remedy }), "the text") }, remedy),
  },
  "a text or an object",
  remedy,
);

const modelField = optional(
  text({ remedy: "Send a model's name or leave it out" }),
  "one model ranks, and answers to every name; an unknown one is logged",
);

const pairRemedy = `Send a text, or a list of up to ${maxDocuments}`;
const pairText = text({ remedy: pairRemedy });
const pairTexts = either(
  {
    string: pairText,
    array: list(pairText, { min: 1, max: maxDocuments, remedy: pairRemedy }),
  },
  "a text or an array",
  pairRemedy,
);

export const scoreFields = {
  text_1: required(pairTexts, "what is asked: one text for all of `text_2`, or a list as long"),
  text_2: required(pairTexts, `what should answer it: a text, or up to ${maxDocuments}`),
  model: modelField,
} satisfies FieldTable;

export const rerankFields = {
  query: required(text({ min: 1, remedy: "Send a text" }), "what the documents should answer"),
  documents: optional(
    list(document, { min: 1, max: maxDocuments, remedy }),
    `up to ${maxDocuments} texts, or objects with \`text\`; required`,
  ),
  texts: optional(
    list(text({ remedy }), { min: 1, max: maxDocuments, remedy }),
    "in the place of `documents`, as text-embeddings-inference has it: the answer is a list of `index` and `score`",
  ),
  model: modelField,
  top_n: optional(integer(1), "so many results at most"),
  return_documents: optional(boolean, "each result has its `document`", false),
  max_tokens_per_doc: optional(integer(1), "Cohere's: so many tokens of each document are read"),
  truncate: optional(
    boolean,
    "text-embeddings-inference's: `true`: a document that is too long with the query is cut at its end, and is no error",
    false,
  ),
  keep_alive: noKeepAlive,
  return_text: optional(boolean, "with `texts`: each result has its `text`", false),
} satisfies FieldTable;
