/** The constraints on the output of a request: the grammar of each round, and the checks of what it left open. */

import type { GrammarSource } from "../engine/types.ts";
import { FermataError } from "../errors.ts";
import { type Parts, finishInTurns } from "../parts.ts";
import { RecentMap } from "../recent-map.ts";
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
import { Markup, anyObject } from "./lark.ts";
import { roundGrammar } from "./round-grammar.ts";
import { openKeyword } from "./style-limits.ts";
import type {
  ControlToken,
  DocumentFormat,
  GuidedTool,
  Guidance,
  ReasoningMarkers,
  RoundReasoning,
} from "./types.ts";
import type { Fault } from "./validator.ts";

/** More tools in one grammar take too long to compile. */
const maxGuidedTools = 512;
const maxGrammarLength = 4 * 1024 * 1024;
/** Characters of requests and their grammars that are kept. */
const keptCharacters = 4 * 1024 * 1024;
/** A smaller request counts as so many: what it becomes takes many times its characters. */
const leastCharacters = 8192;
/** Grammars of one request. */
const mostGrammars = 8;

/** How a model writes, whatever it is asked. */
export interface ModelSyntax {
  syntax: CallSyntax;
  markers: ReasoningMarkers | null;
  controls: readonly ControlToken[];
}

export interface ConstrainedRequest {
  /** Empty: no call is looked for. */
  tools: readonly GuidedTool[];
  guidance: Guidance;
}

interface CompiledTool {
  name: string;
  strict: boolean;
  schema: GuidedSchema;
}

type EnforcedTool = CompiledTool & Pick<ConstrainedPart, "isEnforced">;

type Gbnf = Extract<DocumentFormat, { kind: "grammar" }>;

/** What a request's tools and document become. */
interface CompiledRequest {
  readonly tools: readonly CompiledTool[];
  readonly gbnf: Gbnf | null;
  readonly document: GuidedDocument | null;
  /** A busy machine left something open that may be enforced the next time. */
  readonly isTimedOut: boolean;
  /** Of rounds in which nothing is left open, by what else they depend on. */
  readonly grammars: Map<string, GrammarSource>;
}

/** A tool's arguments, or the document: enforced by masks, or validated afterwards. */
export interface ConstrainedPart {
  /** By the grammar that `round` gives. */
  isEnforced: boolean;
  /** It is validated afterwards. @throws FermataError where it must be enforced */
  leaveOpen(problem: string): void;
}

/** The constraints of a model's requests. Agents send the same tools each time: what they become is kept. */
export class ConstraintMaker {
  readonly #syntax: CallSyntax;
  readonly #markers: ReasoningMarkers | null;
  readonly #markup: Markup;
  /** By content. */
  readonly #kept = new RecentMap<string, CompiledRequest>(keptCharacters, charactersOf);

  constructor({ syntax, markers, controls }: ModelSyntax) {
    this.#syntax = syntax;
    this.#markers = markers;
    this.#markup = new Markup(controls);
  }

  /**
   * Compiles the schemas, large ones on a thread of their own.
   * @throws FermataError of status 400 that names the field, the tool, the keyword and its place; queue_full
   */
  async make(request: ConstrainedRequest): Promise<OutputConstraints> {
    const content = await finishInTurns(contentOf(request));
    const kept = content === null ? undefined : this.#kept.get(content);
    const compiled = kept ?? (await this.#compile(request));
    const keep = (): void => {
      if (content !== null && !compiled.isTimedOut) this.#kept.set(content, compiled);
    };
    keep();
    return new OutputConstraints(request.guidance, compiled, {
      syntax: this.#syntax,
      markers: this.#markers,
      markup: this.#markup,
      onGrammar: keep,
    });
  }

  async #compile({ tools, guidance }: ConstrainedRequest): Promise<CompiledRequest> {
    const document = guidance.document ?? null;
    const gbnf = document?.kind === "grammar" && isGbnf(document.text) ? document : null;
    checkTools(tools, gbnf);
    const documentUse = document === null ? null : documentSchema(document);
    const uses = tools.map(toolSchema);
    if (documentUse !== null) uses.push(documentUse);
    const schemas = await guidedSchemas(uses);
    tools.forEach((tool, index) => checkStyle(tool, schemas[index]!, this.#syntax));
    return {
      tools: tools.map(({ name, strict }, index) => ({
        name,
        strict: strict === true,
        schema: schemas[index]!,
      })),
      gbnf,
      document:
        document === null || gbnf !== null
          ? null
          : guidedDocument(document, schemas[tools.length] ?? null),
      isTimedOut: schemas.some((schema) => schema.isTimedOut),
      grammars: new RecentMap(mostGrammars),
    };
  }
}

function charactersOf({ grammars }: CompiledRequest, { length }: string): number {
  const characters = [...grammars.values()].reduce((sum, { text }) => sum + text.length, length);
  return Math.max(characters, leastCharacters);
}

interface RequestModel extends Omit<ModelSyntax, "controls"> {
  markup: Markup;
  /** A grammar was added to those that are kept. */
  onGrammar: () => void;
}

/** Those of one request. */
export class OutputConstraints {
  readonly #guidance: Guidance;
  readonly #model: RequestModel;
  readonly #gbnf: Gbnf | null;
  readonly #tools: EnforcedTool[];
  readonly #document: GuidedDocument | null;
  readonly #grammars: Map<string, GrammarSource>;

  /** Use {@link ConstraintMaker.make}. */
  constructor(guidance: Guidance, compiled: CompiledRequest, model: RequestModel) {
    const { tools, gbnf, document, grammars } = compiled;
    this.#guidance = guidance;
    this.#model = model;
    this.#gbnf = gbnf;
    this.#tools = tools.map((tool) => ({ ...tool, isEnforced: true }));
    this.#document = document === null ? null : { ...document };
    this.#grammars = grammars;
  }

  /**
   * @param callable names of the tools that may still be called; undefined: as the request says
   * @returns null when anything may be written
   */
  round(
    index: number,
    reasoning: RoundReasoning,
    callable?: readonly string[],
  ): GrammarSource | null {
    if (this.#gbnf === null && this.#document === null && this.#tools.length === 0) return null;
    const { allowed, parallel, toolChoice } = this.#guidance;
    const isRequired = toolChoice === "required" && index === 0;
    const parts = [...this.#tools, ...(this.#document === null ? [] : [this.#document])];
    if (parts.some(({ isEnforced }) => !isEnforced))
      return this.#grammar(isRequired, reasoning, callable);
    const isOff = toolChoice === "none";
    const key = JSON.stringify([isRequired, isOff, parallel, reasoning, allowed, callable]);
    const known = this.#grammars.get(key);
    if (known !== undefined) return known;
    const grammar = this.#grammar(isRequired, reasoning, callable);
    this.#grammars.set(key, grammar);
    this.#model.onGrammar();
    return grammar;
  }

  #grammar(
    isRequired: boolean,
    reasoning: RoundReasoning,
    callable: readonly string[] | undefined,
  ): GrammarSource {
    const { markers, syntax, markup } = this.#model;
    if (this.#gbnf !== null)
      return gbnfDocument(this.#gbnf, { markup, syntax, markers, reasoning });
    const { allowed, parallel, toolChoice } = this.#guidance;
    const isOff = toolChoice === "none";
    const tools = this.#tools.filter(({ name }) => isCallable(name, allowed, callable));
    const canCall = !isOff && tools.length > 0;
    const text = roundGrammar({
      markup,
      syntax,
      tools: (canCall ? tools : this.#tools).map(({ name, schema, isEnforced }) => ({
        name,
        schema: isEnforced ? schema.schema : anyObject,
      })),
      calls: isOff ? "never" : !canCall ? "none" : isRequired ? "required" : "optional",
      parallel,
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
   * @param isGuided it was a call for the grammar of its round, too
   */
  async checkCall(
    call: { name: string; arguments: string },
    isGuided: boolean,
  ): Promise<Fault | null> {
    const tool = this.#tools.find(({ name }) => name === call.name);
    // A call may stand in a document.
    const isHeld = isGuided && this.#document === null;
    if (tool === undefined || (isHeld && this.#isEnforced(tool))) return null;
    return tool.schema.validate(call.arguments === "" ? "{}" : call.arguments);
  }

  /** The same of an answer that is to be a document. */
  async checkDocument(text: string): Promise<Fault | null> {
    const schema = this.#document?.schema;
    if (!schema || (schema.issues.length === 0 && this.#document?.isEnforced)) return null;
    return schema.validate(text);
  }

  /** The masks leave nothing open. Styles other than JSON cannot say all that a schema does. */
  #isEnforced({ schema, isEnforced }: EnforcedTool): boolean {
    const { style } = this.#model.syntax.argumentStyle;
    return isEnforced && style === "json" && schema.issues.length === 0;
  }
}

/** @param limits names that may be called; undefined: all */
export function isCallable(name: string, ...limits: (readonly string[] | undefined)[]): boolean {
  return limits.every((names) => names?.includes(name) ?? true);
}

/** As far as it is compiled. Null: it is nested too deep, which is refused. */
function* contentOf({ tools, guidance }: ConstrainedRequest): Parts<string | null> {
  const texts: string[] = [];
  try {
    for (const { name, strict, parameters } of tools) {
      texts.push(JSON.stringify([name, strict === true, parameters]));
      yield;
    }
    texts.push(JSON.stringify(guidance.document ?? null));
  } catch (error) {
    if (error instanceof RangeError) return null;
    throw error;
  }
  return texts.join("\n");
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
