// Dependencies point one way. For TypeScript the lint rule holds the layers (scripts/lint/layers.mjs);
// here are the borders of C++ and the folders that a newcomer counts on.
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { importProblem } from "../../scripts/lint/layers.mjs";

const root = fileURLToPath(new URL("../..", import.meta.url));

function includes(folder: string): { file: string; path: string }[] {
  const directory = join(root, "native", folder);
  return readdirSync(directory)
    .filter((name) => /\.(h|cpp)$/.test(name))
    .flatMap((file) =>
      [...readFileSync(join(directory, file), "utf8").matchAll(/^#include [<"]([^>"]+)[>"]/gm)].map(
        (match) => ({ file: `${folder}/${file}`, path: match[1] ?? "" }),
      ),
    );
}

/** Which folders of native/ each one may include. */
const mayInclude: Record<string, readonly string[]> = {
  core: ["core"],
  // Which weights keep a row's bits, the kernels know.
  llama: ["core", "kernels", "llama"],
  guidance: ["core", "guidance"],
  runtime: ["core", "runtime"],
  kernels: ["kernels"],
  devices: ["devices"],
  binding: ["core", "llama", "guidance", "runtime", "binding"],
  // Its addon reads its options as the other one does.
  simulation: ["core", "binding", "simulation"],
};
const foreign = (folder: string, path: string): boolean => {
  const [from] = path.split("/");
  return from !== undefined && from in mayInclude && !mayInclude[folder]!.includes(from);
};
const isLlama = (path: string): boolean => /^(llama|ggml|gguf)[\w-]*\.h$/.test(path);
const isNode = (path: string): boolean => /^(napi|node_api|js_native_api)\.h$/.test(path);

test("native/core is pure: no llama.cpp, no Node, no clock, no thread", () => {
  const forbidden = /^(chrono|thread|mutex|condition_variable|atomic|ctime|time\.h)$/;
  const found = includes("core").filter(
    ({ path }) => isLlama(path) || isNode(path) || forbidden.test(path),
  );
  expect(found).toEqual([]);
});

test("binding -> runtime -> core <- llama, core <- guidance, llama -> kernels; devices by themselves; nothing needs simulation", () => {
  const folders = readdirSync(join(root, "native"), { withFileTypes: true })
    .filter((entry) => entry.isDirectory() && entry.name !== "compat")
    .map(({ name }) => name);
  expect(folders.sort()).toEqual(Object.keys(mayInclude).sort());
  const found = folders.flatMap((folder) =>
    includes(folder).filter(({ path }) => foreign(folder, path.replace(/^\.\//, ""))),
  );
  expect(found).toEqual([]);
});

test("only native/llama includes llama.h, only native/binding includes napi.h; kernels are ggml's", () => {
  const found = Object.keys(mayInclude).flatMap((folder) =>
    includes(folder).filter(
      ({ path }) =>
        (folder !== "llama" && folder !== "kernels" && isLlama(path)) ||
        (folder !== "binding" && isNode(path)),
    ),
  );
  expect(found).toEqual([]);
});

test("src/client runs in browsers: nothing of Node, nothing of the server", () => {
  const folder = join(root, "src/client");
  const imports = readdirSync(folder).flatMap((file) => {
    const text = readFileSync(join(folder, file), "utf8");
    expect(text, file).not.toMatch(/\b(process|Buffer|require|setImmediate)\b/);
    return [...text.matchAll(/ from "([^"]+)"/g)].map((match) => match[1] ?? "");
  });
  expect(imports.filter((path) => !path.startsWith("./"))).toEqual(["react"]);
});

test("inside src/server, body <- http <- answer <- the wires, and no wire imports another", () => {
  const problem = (file: string, specifier: string): unknown =>
    importProblem(join(root, "src/server", file), join(root, "src"), specifier);
  expect(problem("responses/routes.ts", "../answer/target.ts")).toBeUndefined();
  expect(problem("responses/routes.ts", "../services.ts")).toBeUndefined();
  expect(problem("app.ts", "./responses/routes.ts")).toBeUndefined();
  expect(problem("answer/target.ts", "../responses/routes.ts")).toContain("may not import");
  expect(problem("responses/routes.ts", "../messages/route.ts")).toContain("may not import");
  expect(problem("body/field.ts", "../app.ts")).toContain("may not import");
});

test("no file of src imports itself by way of others", () => {
  const source = join(root, "src");
  const files = readdirSync(source, { recursive: true, encoding: "utf8" }).filter((name) =>
    name.endsWith(".ts"),
  );
  const imports = new Map(
    files.map((file) => {
      const text = readFileSync(join(source, file), "utf8");
      const found = [...text.matchAll(/^(?:import|export) [^;]*?from "(\.[^"]+)";/gms)];
      return [file, found.map((match) => join(dirname(file), match[1]!))];
    }),
  );
  const done = new Set<string>();
  const circles: string[] = [];
  const visit = (file: string, way: readonly string[]): void => {
    if (way.includes(file)) circles.push([...way.slice(way.indexOf(file)), file].join(" -> "));
    if (done.has(file)) return;
    done.add(file);
    for (const next of imports.get(file) ?? []) visit(next, [...way, file]);
  };
  for (const file of files) visit(file, []);
  expect(circles).toEqual([]);
});

test("a layer of src may import the layers below it and no other", () => {
  const problem = (file: string, specifier: string): unknown =>
    importProblem(join(root, "src", file), join(root, "src"), specifier);
  expect(problem("server/app.ts", "../engine/engine.ts")).toBeUndefined();
  expect(problem("chat/chat.ts", "../errors.ts")).toBeUndefined();
  expect(problem("tools/tool-loop.ts", "../chat/types.ts")).toBeUndefined();
  expect(problem("engine/engine.ts", "../chat/chat.ts")).toContain("src/engine may not import");
  expect(problem("tools/tool-loop.ts", "../mcp/host.ts")).toContain("dependencies point one way");
  expect(problem("novel/thing.ts", "../errors.ts")).toContain("no place");
});
