// The programs in dist/: few files, which bring their packages along. Needs `npm run build`.
import { readFileSync } from "node:fs";
import { builtinModules } from "node:module";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { notBundled } from "../../scripts/setup/bundle.mjs";

const dist = new URL("../../dist/", import.meta.url);
const programs = [
  "index.js",
  "cli/main.js",
  "cli/worker.js",
  "guidance/schema-worker.js",
  "store/sqlite/store-worker.js",
];

/** Files that are loaded with this one, and what is imported beside them; `later`: with those that are loaded when they are needed, too. */
function reach(program: string, { later }: { later: boolean }) {
  const files = new Set<string>();
  const foreign = new Set<string>();
  const visit = (url: URL): void => {
    if (files.has(url.href)) return;
    files.add(url.href);
    const text = readFileSync(fileURLToPath(url), "utf8");
    const imported = [...text.matchAll(/^(?:import|export) (?:[^;"]*? from )?"([^"]+)";$/gm)];
    const dynamic = later ? [...text.matchAll(/\bimport\("(\.[^"]+)"\)/g)] : [];
    for (const [, path] of [...imported, ...dynamic])
      if (path!.startsWith(".")) visit(new URL(path!, url));
      else foreign.add(path!);
  };
  visit(new URL(program, dist));
  const isOther = (name: string): boolean =>
    !name.startsWith("node:") && !builtinModules.includes(name);
  return { files, packages: [...foreign].filter(isOther) };
}

test.each(programs)("%s imports no package but those with native code", (program) => {
  const { files, packages } = reach(program, { later: true });
  expect(notBundled).toEqual(expect.arrayContaining(packages));
  expect([...files].every((file) => file.startsWith(dist.href))).toBe(true);
});

test("a start reads few files; MCP and Postgres are read by those who use them", () => {
  const { files } = reach("cli/worker.js", { later: false });
  expect(files.size).toBeLessThan(50);
  const all = [...reach("cli/worker.js", { later: true }).files];
  for (const part of ["McpHost", "PostgresStore"]) {
    const defines = (file: string): boolean =>
      new RegExp(`^(?:var|let|const|class) ${part}\\b`, "m").test(
        readFileSync(fileURLToPath(file), "utf8"),
      );
    const home = all.filter(defines);
    expect(home, part).toHaveLength(1);
    expect(files.has(home[0]!), part).toBe(false);
  }
});
