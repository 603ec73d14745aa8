// The folders of src/ and what each may import: a layer imports layers below it, never beside or
// above. Files of types only (types.ts, *-types.ts) and files in src/ itself may be imported by all.

import { dirname, relative, resolve, sep } from "node:path";

const layers = [
  ["native"],
  ["engine"],
  ["guidance"],
  ["chat"],
  ["tools"],
  ["agents", "mcp", "store", "models"],
  ["server"],
  ["cli"],
];

const rank = new Map(layers.flatMap((names, index) => names.map((name) => [name, index])));
// It runs in browsers and knows the wire only.
rank.set("client", -1);

// Inside of src/server: a wire (chat-completions, responses, ...) imports no other wire.
const serverLayers = [["body"], ["http"], ["answer"], ["a wire"], ["app.ts"]];
const serverRank = new Map(
  serverLayers.flatMap((names, index) => names.map((name) => [name, index])),
);
/** Types that all of src/server may import. */
const serverTypes = new Set(["context.ts", "route.ts", "services.ts"]);

function serverFolderOf(file, source) {
  const [layer, first, ...rest] = relative(source, file).split(sep);
  if (layer !== "server" || first === undefined) return undefined;
  const isTop = rest.length === 0;
  if (isTop && (serverTypes.has(first) || !serverRank.has(first))) return undefined;
  return first;
}

/** What is wrong with an import from one folder of src/server to another, or undefined. */
function serverProblem(from, to) {
  if (from === undefined || to === undefined || from === to) return undefined;
  const rankOf = (name) => serverRank.get(name) ?? serverRank.get("a wire");
  if (rankOf(to) < rankOf(from)) return undefined;
  return `src/server/${from} may not import src/server/${to}: ${serverLayers.flat().join(" <- ")}.`;
}

function layerOf(file, source) {
  const [first, ...rest] = relative(source, file).split(sep);
  return rest.length > 0 ? first : undefined;
}

/** What is wrong with this import, or undefined. `source` is the path of src/. */
export function importProblem(file, source, specifier) {
  const from = layerOf(file, source);
  if (from === undefined) return undefined;
  if (!rank.has(from)) return `src/${from} has no place in scripts/lint/layers.mjs yet.`;
  if (!specifier.startsWith(".") || /(^|[/-])types\.[jt]s$/.test(specifier)) return undefined;
  const target = resolve(dirname(file), specifier);
  const to = layerOf(target, source);
  if (to === "server" && from === "server")
    return serverProblem(serverFolderOf(file, source), serverFolderOf(target, source));
  if (to === undefined || to === from || rank.get(to) < rank.get(from)) return undefined;
  return `src/${from} may not import src/${to}: dependencies point one way (ARCHITECTURE.md).`;
}

export const layerRule = {
  create(context) {
    const file = context.physicalFilename ?? context.filename;
    const end = file.lastIndexOf(`${sep}src${sep}`);
    if (end < 0) return {};
    const source = file.slice(0, end + 4);
    const check = (node) => {
      const message = node.source && importProblem(file, source, node.source.value);
      if (message) context.report({ node: node.source, message });
    };
    return {
      ImportDeclaration: check,
      ExportNamedDeclaration: check,
      ExportAllDeclaration: check,
      ImportExpression: (node) => node.source.type === "Literal" && check(node),
    };
  },
};
