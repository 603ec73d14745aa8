/** A conversation's messages are a tree: each branch is a way from the first message to a last one. */

export interface TreeNode {
  id: string;
  parentId: string | null;
}

/** From the first message to `leafId`, both included; empty for null. */
export function pathTo<Node extends TreeNode>(
  messages: readonly Node[],
  leafId: string | null,
): Node[] {
  const byId = new Map(messages.map((message) => [message.id, message]));
  const path: Node[] = [];
  for (let node = byId.get(leafId ?? ""); node !== undefined; node = byId.get(node.parentId ?? ""))
    path.push(node);
  return path.reverse();
}
