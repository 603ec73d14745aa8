import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";

const sdk = dirname(createRequire(import.meta.url).resolve("openai"));

/**
 * Names of the properties of an exported interface of the openai SDK, read from its declarations, so
 * that a field that a new version brings shows up. `file` is a path inside the package without ending.
 */
export function sdkFields(file: string, interfaceName: string): string[] {
  const source = readFileSync(join(sdk, `${file}.d.ts`), "utf8");
  const [, body] = source.split(
    new RegExp(`^export interface ${interfaceName}(?: extends [^{]+)? \\{$`, "m"),
  );
  if (body === undefined) throw new Error(`${file}.d.ts has no interface ${interfaceName}.`);
  const own = body.slice(0, body.search(/^\}/m));
  return [...own.matchAll(/^ {4}(\w+)\??:/gm)].map(([, name]) => name!);
}
