import {
  type ConstrainedRequest,
  type ModelSyntax,
  type OutputConstraints,
  ConstraintMaker,
} from "../../src/guidance/output-constraints.ts";

/** For one request to a model that writes like this. */
export function makeConstraints({
  tools,
  guidance,
  ...model
}: ModelSyntax & ConstrainedRequest): Promise<OutputConstraints> {
  return new ConstraintMaker(model).make({ tools, guidance });
}
