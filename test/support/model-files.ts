/** Models of a folder, for pools whose loads are fakes. */

import type { ModelFile } from "../../src/models/types.ts";

export const fileOf = (name: string): ModelFile => ({
  name,
  path: `/models/${name}.gguf`,
  paths: [`/models/${name}.gguf`],
  bytes: 1,
  created: 0,
  describe: () => null,
});
