import { writeBaseModel } from "../support/base-model.ts";
import { describeBaseModel } from "../support/base-model-contract.ts";

describeBaseModel("the model that ships, without its template", writeBaseModel());
