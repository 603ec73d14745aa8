export interface Block {
  type: string;
  [key: string]: unknown;
}
