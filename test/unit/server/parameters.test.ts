import { describe, expect, test } from "vitest";
import { embeddingParameters } from "../../../src/server/embeddings/fields.ts";
import { completionParameters } from "../../../src/server/completions/fields.ts";
import { chatCompletionParameters } from "../../../src/server/chat-completions/fields.ts";
import { nativeCompletionParameters } from "../../../src/server/completions/native-fields.ts";
import { responseParameters } from "../../../src/server/responses/fields.ts";
import { type DocumentedTable, parameterDocs } from "../../support/parameter-docs.ts";
import { sdkFields } from "../../support/sdk-fields.ts";

const tables: DocumentedTable[] = [
  {
    endpoint: "POST /v1/chat/completions",
    table: chatCompletionParameters,
    sdkFields: sdkFields(
      "resources/chat/completions/completions",
      "ChatCompletionCreateParamsBase",
    ),
  },
  {
    endpoint: "POST /v1/responses",
    table: responseParameters,
    sdkFields: sdkFields("resources/responses/responses", "ResponseCreateParamsBase"),
  },
  {
    endpoint: "POST /v1/completions",
    table: completionParameters,
    sdkFields: sdkFields("resources/completions", "CompletionCreateParamsBase"),
  },
  {
    endpoint: "POST /v1/embeddings",
    table: embeddingParameters,
    sdkFields: sdkFields("resources/embeddings", "EmbeddingCreateParams"),
  },
];

const native: DocumentedTable = {
  endpoint: "POST /completion",
  table: nativeCompletionParameters,
  // Nothing of it is OpenAI's.
  sdkFields: Object.keys(nativeCompletionParameters),
};

describe.each(tables)("$endpoint", ({ table, sdkFields: fields }) => {
  test("every field of the SDK's request type is in the table", () => {
    expect(fields).toContain("model");
    expect(fields.filter((field) => !Object.hasOwn(table, field))).toEqual([]);
  });
});

test("the docs show the tables", async () => {
  await expect(parameterDocs([...tables, native])).toMatchFileSnapshot(
    "../../../docs/parameters.md",
  );
});
