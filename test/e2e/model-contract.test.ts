import { describeModel } from "../support/model-contract.ts";

describeModel("the model that ships", undefined);
