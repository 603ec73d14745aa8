/** Files that come with the package, found from dist/cli and from src/cli alike. */

import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

const root = new URL("../../", import.meta.url);

export const modelsDirectory = fileURLToPath(new URL("models/", root));
export const pageDirectory = fileURLToPath(new URL("ui/dist/", root));

export function packageVersion(): string {
  const manifest = JSON.parse(readFileSync(new URL("package.json", root), "utf8")) as {
    version: string;
  };
  return manifest.version;
}
