import { describe } from "vitest";
import { describeBaseModel } from "../support/base-model-contract.ts";
import { realModelPath } from "../support/real-models.ts";

const path = realModelPath("gemma3");
if (path === undefined) describe.skip("gemma3");
else describeBaseModel("gemma3", path);
