/** JSON Schema validation of what a model wrote, for constraints that no mask holds. */

import { Ajv, type AnySchema, type Options, type ValidateFunction } from "ajv";
import { Ajv2020 } from "ajv/dist/2020.js";
import formats from "ajv-formats";

export type Draft = "draft-07" | "draft-2020-12";

/** @returns null when the value is valid, else what is wrong, for the model and the log */
export type Validate = (value: unknown) => string | null;

const options: Options = {
  strict: false,
  allErrors: false,
  validateSchema: false,
  addUsedSchema: false,
  logger: false,
  validateFormats: true,
};

/**
 * Compiles; what it takes grows with the schema, so bound that first.
 * @throws whatever ajv says of a schema that is not one
 */
export function compileValidator(schema: AnySchema, draft: Draft): Validate {
  const ajv = draft === "draft-07" ? new Ajv(options) : new Ajv2020(options);
  formats.default(ajv);
  const validate: ValidateFunction = ajv.compile(schema);
  return (value) => {
    if (validate(value)) return null;
    const [error] = validate.errors ?? [];
    if (error === undefined) return "is not valid";
    return `${error.instancePath || "/"} ${error.message ?? "is not valid"}`;
  };
}
