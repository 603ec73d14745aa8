/** Fields of the bodies of /v1/conversations. */

import { optional, required, type FieldTable } from "../body/field.ts";
import { metadata, metadataField } from "../body/stored.ts";
import { newItems } from "./items.ts";

export const newConversationFields = {
  metadata: metadataField,
  items: optional(newItems(0), "", []),
} satisfies FieldTable;

export const conversationLabelFields = {
  metadata: required({ ...metadata, remedy: "Send an object of strings" }),
} satisfies FieldTable;

export const newItemsFields = { items: required(newItems(1)) } satisfies FieldTable;
