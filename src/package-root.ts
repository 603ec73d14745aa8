/**
 * The folder of the package, as a URL with "/" at its end. Code does not know how deep it lies in it: in `src/`, or in
 * `dist/` by itself or together with others.
 */

import { existsSync } from "node:fs";
import { FermataError } from "./errors.ts";

export const packageRoot: URL = ((): URL => {
  let folder = new URL("./", import.meta.url);
  while (!existsSync(new URL("package.json", folder))) {
    const above = new URL("../", folder);
    if (above.href === folder.href) {
      const message = `Fermata's package.json lies in no folder above ${import.meta.url}.`;
      throw new FermataError("internal_error", message);
    }
    folder = above;
  }
  return folder;
})();

/** A file that `npm run build` makes: Node starts no TypeScript in a thread or process, so code that runs from its source takes it, too. */
export function compiledFile(path: string): URL {
  return new URL(`dist/${path}`, packageRoot);
}
