import { describe } from "vitest";
import { describeModel } from "../support/model-contract.ts";
import { realModelPath } from "../support/real-models.ts";

for (const name of ["smollm2", "qwen2.5-coder"] as const) {
  const path = realModelPath(name);
  if (path === undefined) describe.skip(name);
  else describeModel(name, path);
}
