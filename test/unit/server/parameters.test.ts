import { describe, expect, test } from "vitest";
import { embeddingFields, nativeEmbeddingFields } from "../../../src/server/embeddings/fields.ts";
import { completionFields } from "../../../src/server/completions/fields.ts";
import { chatCompletionFields } from "../../../src/server/chat-completions/fields.ts";
import {
  infillFields,
  nativeCompletionFields,
} from "../../../src/server/completions/native-fields.ts";
import { messageFields } from "../../../src/server/messages/fields.ts";
import {
  chatFields,
  embedFields,
  generateFields,
  oneEmbeddingFields,
} from "../../../src/server/ollama/fields.ts";
import { rerankFields, scoreFields } from "../../../src/server/rerank/fields.ts";
import { responseFields } from "../../../src/server/responses/fields.ts";
import { type DocumentedTable, parameterDocs } from "../../support/parameter-docs.ts";
import { sdkFields } from "../../support/sdk-fields.ts";

const tables: DocumentedTable[] = [
  {
    endpoint: "POST /v1/chat/completions",
    table: chatCompletionFields,
    sdkFields: sdkFields(
      "resources/chat/completions/completions",
      "ChatCompletionCreateParamsBase",
    ),
  },
  {
    endpoint: "POST /v1/responses",
    table: responseFields,
    sdkFields: sdkFields("resources/responses/responses", "ResponseCreateParamsBase"),
  },
  {
    endpoint: "POST /v1/completions",
    table: completionFields,
    sdkFields: sdkFields("resources/completions", "CompletionCreateParamsBase"),
  },
  {
    endpoint: "POST /v1/embeddings",
    table: embeddingFields(),
    sdkFields: sdkFields("resources/embeddings", "EmbeddingCreateParams"),
  },
];

/** Nothing of them is OpenAI's. */
const others: DocumentedTable[] = Object.entries({
  "POST /completion": nativeCompletionFields,
  "POST /infill": infillFields,
  "POST /embedding": nativeEmbeddingFields,
  "POST /v1/rerank": rerankFields,
  "POST /v1/score": scoreFields,
  "POST /v1/messages": messageFields,
  "POST /api/chat": chatFields,
  "POST /api/generate": generateFields,
  "POST /api/embed": embedFields(),
  "POST /api/embeddings": oneEmbeddingFields,
}).map(([endpoint, table]) => ({ endpoint, table, sdkFields: Object.keys(table) }));

describe.each(tables)("$endpoint", ({ table, sdkFields: fields }) => {
  test("every field of the SDK's request type is in the table", () => {
    expect(fields).toContain("model");
    expect(fields.filter((field) => !Object.hasOwn(table, field))).toEqual([]);
  });
});

test("the docs show the tables", async () => {
  await expect(parameterDocs([...tables, ...others])).toMatchFileSnapshot(
    "../../../docs/parameters.md",
  );
});
