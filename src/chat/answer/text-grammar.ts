/** A text that is no conversation, in a form that the request asks for. */

import type { Grammar } from "../../engine/types.ts";
import { FermataError } from "../../errors.ts";
import type { CallSyntax } from "../../guidance/call-syntax.ts";
import { ConstraintMaker } from "../../guidance/output-constraints.ts";
import type { DocumentFormat } from "../../guidance/types.ts";
import type { ChatEngine } from "../types.ts";

/** Of a text nothing is a call. */
const noCalls: CallSyntax = {
  sectionOpen: "",
  sectionClose: "",
  callOpen: "",
  callClose: "",
  separator: "",
  body: [],
  argumentStyle: { style: "json", itemSeparator: ", ", keySeparator: ": " },
};

const constraintsOfTexts = new ConstraintMaker({ syntax: noCalls, markers: null, controls: [] });

/**
 * What masks cannot enforce is refused, because a text is not validated afterwards.
 * @param leavesOut the keywords of a schema that masks cannot enforce, instead
 * @throws FermataError of status 400 that names the field
 */
export async function compileText(
  document: DocumentFormat,
  engine: Pick<ChatEngine, "compileGrammar">,
  { leavesOut = false } = {},
): Promise<Grammar | undefined> {
  const form =
    document.kind === "json_schema" && !leavesOut
      ? { ...document, strict: true, alwaysStrict: true }
      : document;
  const constraints = await constraintsOfTexts.make({
    tools: [],
    guidance: { toolChoice: "auto", parallel: true, closeAtLimit: false, document: form },
  });
  const source = constraints.round(0, "no");
  if (source === null) return undefined;
  try {
    return await engine.compileGrammar(source);
  } catch (error) {
    if (!(error instanceof FermataError) || error.code !== "invalid_grammar") throw error;
    throw new FermataError(error.code, error.message, {
      param: documentField(document),
      cause: error,
    });
  }
}

/** The field that asks for it. */
export function documentField(document: DocumentFormat): string {
  if ("field" in document) return document.field;
  return document.kind === "choice" ? "guided_choice" : "response_format";
}
