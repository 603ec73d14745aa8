/** What is kept of responses and conversations, wherever it is kept. Type-only. */

/** An item as the Responses API writes it; the store reads its id, its type and what tells it apart. */
export interface StoredItem {
  id: string;
  type: string;
  [key: string]: unknown;
}

export interface StoredResponse {
  id: string;
  previousResponseId: string | null;
  conversationId: string | null;
  /** The response object without its output. */
  body: Record<string, unknown>;
}

/** The items of a response, in order. */
export interface ResponseItems {
  /** What came before this response's own input. */
  history: StoredItem[];
  input: StoredItem[];
  /** What was said, with the outputs of calls that were answered while it was said. */
  output: StoredItem[];
}

export interface NewResponse extends StoredResponse {
  owner: string;
  /** Unix seconds. */
  createdAt: number;
  input: readonly StoredItem[];
}

export interface StoredConversation {
  id: string;
  /** Unix seconds. */
  createdAt: number;
  metadata: Record<string, string>;
}

/**
 * Every item is stored once; responses and conversations refer to items in their order. An owner
 * never sees what another one stored. What a promise says is done survives the end of the process.
 */
export interface ResponseStore {
  /**
   * The history is that of the previous response, or what its conversation holds now. Input items that
   * are stored already, by id or by what they say, are referred to.
   */
  createResponse(response: NewResponse): Promise<void>;
  /** Replaces the body and the output; the response is gone if it was deleted meanwhile. */
  updateResponse(
    owner: string,
    id: string,
    body: Record<string, unknown>,
    output: readonly StoredItem[],
  ): Promise<void>;
  /** Adds a response's input and output to its conversation. */
  appendToConversation(owner: string, responseId: string): Promise<void>;
  response(owner: string, id: string): Promise<StoredResponse | null>;
  /** Null if there is no such response. */
  responseItems(owner: string, id: string): Promise<ResponseItems | null>;
  /** False if there was none. What only it referred to goes with it. */
  deleteResponse(owner: string, id: string): Promise<boolean>;
  item(owner: string, id: string): Promise<StoredItem | null>;
  /** A later version of a stored item, for all who refer to it. */
  updateItem(owner: string, item: StoredItem): Promise<void>;

  /** The next event of a response, for clients that read its stream later; numbers count from 0. */
  addEvent(id: string, number: number, event: object): Promise<void>;
  /** As far as they came. */
  events(owner: string, id: string): Promise<unknown[]>;

  createConversation(owner: string, conversation: StoredConversation): Promise<void>;
  conversation(owner: string, id: string): Promise<StoredConversation | null>;
  setConversationMetadata(
    owner: string,
    id: string,
    metadata: Record<string, string>,
  ): Promise<boolean>;
  deleteConversation(owner: string, id: string): Promise<boolean>;
  conversationItems(owner: string, id: string): Promise<StoredItem[] | null>;
  /** The items as they are stored: one that is known is referred to. */
  addConversationItems(
    owner: string,
    id: string,
    items: readonly StoredItem[],
  ): Promise<StoredItem[]>;
  deleteConversationItem(owner: string, id: string, itemId: string): Promise<boolean>;

  close(): Promise<void>;
}
