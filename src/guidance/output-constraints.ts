/** The constraints on the output of one request: the grammar of each round, and the checks of what it left open. */

import type { GrammarSource } from "../engine/types.ts";
import { FermataError } from "../errors.ts";
import type { CallSyntax } from "./call-syntax.ts";
import {
  type GuidedDocument,
  documentRules,
  documentSchema,
  gbnfDocument,
  guidedDocument,
  isGbnf,
} from "./documents.ts";
import { type GuidedSchema, type SchemaUse, guidedSchemas } from "./refuse-schemas.ts";
import { Markup } from "./lark.ts";
import { roundGrammar } from "./round-grammar.ts";
import { openKeyword } from "./style-limits.ts";
import type { JsonObject } from "./schema/types.ts";
import type {
  ControlToken,
  DocumentFormat,
  GuidedTool,
  Guidance,
  ReasoningMarkers,
} from "./types.ts";
import type { Fault } from "./validator.ts";

/** More tools in one grammar take too long to compile. */
const maxGuidedTools = 512;
const maxGrammarLength = 4 * 1024 * 1024;

export interface ConstraintOptions {
  syntax: CallSyntax;
  markers: ReasoningMarkers | null;
  controls: readonly ControlToken[];
  /** Empty: no call is looked for. */
  tools: readonly GuidedTool[];
  guidance: Guidance;
}

interface CompiledTool {
  name: string;
  strict: boolean;
  schema: GuidedSchema;
  isEnforced: boolean;
}

type Gbnf = Extract<DocumentFormat, { kind: "grammar" }>;

/** A tool's arguments, or the document: enforced by masks, or validated afterwards. */
export interface ConstrainedPart {
  /** By the grammar that `round` gives. */
  isEnforced: boolean;
  /** It is validated afterwards. @throws FermataError where it must be enforced */
  leaveOpen(problem: string): void;
}

const anyObject: JsonObject = { type: "object", additionalProperties: true };

export class OutputConstraints {
  readonly #options: ConstraintOptions;
  readonly #markup: Markup;
  readonly #tools: CompiledTool[];
  readonly #gbnf: Gbnf | null;
  #document: GuidedDocument | null;

  /**
   * Compiles the schemas, large ones on a thread of their own.
   * @throws FermataError of status 400 that names the field, the tool, the keyword and its place; queue_full
   */
  static async create(options: ConstraintOptions): Promise<OutputConstraints> {
    const { tools, guidance } = options;
    const document = guidance.document ?? null;
    const gbnf = document?.kind === "grammar" && isGbnf(document.text) ? document : null;
    checkTools(tools, gbnf);
    const documentUse = document === null ? null : documentSchema(document);
    const uses = tools.map(toolSchema);
    if (documentUse !== null) uses.push(documentUse);
    const schemas = await guidedSchemas(uses);
    tools.forEach((tool, index) => checkStyle(tool, schemas[index]!, options.syntax));
    return new OutputConstraints(options, {
      tools: tools.map(({ name, strict }, index) => ({
        name,
        strict: strict === true,
        schema: schemas[index]!,
        isEnforced: true,
      })),
      gbnf,
      document:
        document === null || gbnf !== null
          ? null
          : guidedDocument(document, schemas[tools.length] ?? null),
    });
  }

  private constructor(
    options: ConstraintOptions,
    compiled: { tools: CompiledTool[]; gbnf: Gbnf | null; document: GuidedDocument | null },
  ) {
    this.#options = options;
    this.#markup = new Markup(options.controls);
    this.#tools = compiled.tools;
    this.#gbnf = compiled.gbnf;
    this.#document = compiled.document;
  }

  /**
   * @param callable names of the tools that may still be called; undefined: as the request says
   * @returns null when anything may be written
   */
  round(
    index: number,
    reasoning: "no" | "split" | "open",
    callable?: readonly string[],
  ): GrammarSource | null {
    const { guidance, markers, syntax } = this.#options;
    const isRequired = guidance.toolChoice === "required" && index === 0;
    const tools = this.#tools.filter(({ name }) =>
      [guidance.allowed, callable].every((names) => names?.includes(name) ?? true),
    );
    const canCall = tools.length > 0;
    if (this.#gbnf !== null)
      return gbnfDocument(this.#gbnf, { markup: this.#markup, syntax, markers, reasoning });
    if (this.#tools.length === 0 && this.#document === null) return null;
    const text = roundGrammar({
      markup: this.#markup,
      syntax,
      tools: (canCall ? tools : this.#tools).map(({ name, schema, isEnforced }) => ({
        name,
        schema: isEnforced ? schema.schema : anyObject,
      })),
      calls: !canCall ? "none" : isRequired ? "required" : "optional",
      parallel: guidance.parallel,
      document: this.#document === null ? null : documentRules(this.#document),
      reasoning,
      markers,
    });
    if (text.length > maxGrammarLength)
      throw new FermataError(
        "schema_too_large",
        "The tools and schemas together are too large to enforce. Send fewer.",
        { param: "tools" },
      );
    return { kind: "lark", text };
  }

  /** What the engine may refuse. What must be enforced comes first. */
  parts(): ConstrainedPart[] {
    const parts: { part: ConstrainedPart; isStrict: boolean }[] = [];
    const document = this.#document;
    if (document !== null) {
      const { field, isStrict } = document;
      const leaveOpen = (problem: string): void => {
        if (isStrict) throw refused(`"${field}"`, field, problem);
      };
      parts.push({ part: Object.assign(document, { leaveOpen }), isStrict });
    }
    for (const tool of this.#tools) {
      const { name, strict } = tool;
      const leaveOpen = (problem: string): void => {
        if (strict) throw refused(`The parameters of the tool "${name}"`, "tools", problem);
      };
      parts.push({ part: Object.assign(tool, { leaveOpen }), isStrict: strict });
    }
    return [
      ...parts.filter(({ isStrict }) => isStrict),
      ...parts.filter(({ isStrict }) => !isStrict),
    ].map(({ part }) => part);
  }

  /**
   * What a finished call gets wrong that no mask has prevented. Null: nothing.
   * @param isMasked its round had the grammar
   */
  async checkCall(
    call: { name: string; arguments: string },
    isMasked: boolean,
  ): Promise<Fault | null> {
    const tool = this.#tools.find(({ name }) => name === call.name);
    if (tool === undefined || (isMasked && this.#isEnforced(tool))) return null;
    return tool.schema.validate(call.arguments === "" ? "{}" : call.arguments);
  }

  /** The same of an answer that is to be a document. */
  async checkDocument(text: string): Promise<Fault | null> {
    const schema = this.#document?.schema;
    if (!schema || (schema.issues.length === 0 && this.#document?.isEnforced)) return null;
    return schema.validate(text);
  }

  /** The masks leave nothing open. Styles other than JSON cannot say all that a schema does. */
  #isEnforced({ schema, isEnforced }: CompiledTool): boolean {
    const { style } = this.#options.syntax.argumentStyle;
    return isEnforced && style === "json" && schema.issues.length === 0;
  }
}

function refused(subject: string, field: string, problem: string): FermataError {
  const reason = problem.split("\n", 1)[0]!.slice(0, 300);
  return new FermataError(
    "unsupported_schema",
    `${subject}: the mask engine refuses it: ${reason}`,
    {
      param: field,
    },
  );
}

function checkTools(tools: readonly GuidedTool[], gbnf: Gbnf | null): void {
  if (tools.length > maxGuidedTools)
    throw new FermataError(
      "invalid_value",
      `There are ${tools.length} tools; send at most ${maxGuidedTools}.`,
      { param: "tools" },
    );
  if (gbnf !== null && tools.length > 0)
    throw new FermataError(
      "invalid_value",
      `"${gbnf.field}" is GBNF, which cannot be joined with tools. Send Lark, or tool_choice "none".`,
      { param: gbnf.field },
    );
}

/** @throws FermataError of status 400 that names the tool: it is strict, and its calls' form cannot hold its schema */
function checkStyle(
  { name, strict }: GuidedTool,
  { schema }: GuidedSchema,
  syntax: CallSyntax,
): void {
  const keyword = strict === true ? openKeyword(syntax.argumentStyle, schema) : null;
  if (keyword === null) return;
  throw new FermataError(
    "unsupported_schema",
    `The parameters of the tool "${name}": the keyword "${keyword}" cannot be enforced in the form in which this model writes calls. Send strict: false to have the value validated afterwards.`,
    { param: "tools" },
  );
}

function toolSchema({ name, parameters, strict }: GuidedTool): SchemaUse {
  return {
    schema: parameters,
    options: { closed: true, objectOnly: true },
    subject: `The parameters of the tool "${name}"`,
    field: "tools",
    strict: strict === true,
  };
}
