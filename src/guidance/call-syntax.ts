/**
 * How a format writes tool calls, for the grammar of a round. Data only: a format gives one value, and
 * `round-grammar.ts` turns it into a grammar in which a call cannot be malformed.
 *
 * A marker that is spelled by a CONTROL token of the vocabulary becomes that token in the grammar,
 * inside of a longer text too. Text of USER_DEFINED tokens matches however it is tokenized.
 */
export interface CallSyntax {
  /** Around all calls of a turn; "" when calls stand alone. */
  readonly sectionOpen: string;
  readonly sectionClose: string;
  /** Around each call. `callOpen` (or `sectionOpen`) is what free text may not contain. */
  readonly callOpen: string;
  readonly callClose: string;
  /** Between two calls. */
  readonly separator: string;
  /** Some of the form's models write none. Default: no. */
  readonly mayLackSeparator?: boolean;
  /** A bare object that names a tool is a call, too: `{"name": …, "arguments": {…}}`. Default: it is text. */
  readonly readsBare?: boolean;
  /** Between `callOpen` and `callClose`. */
  readonly body: readonly CallPart[];
  readonly argumentStyle: ArgumentStyle;
  /** Around the answer's text, where the format marks it. `textClose` alone may be missing. */
  readonly textOpen?: string;
  readonly textClose?: string;
  /** After the reasoning's closing marker, before what follows it. */
  readonly afterReasoning?: string;
  /** Between the answer's text, which has its own marker, and a call. Default: no call follows such a text. */
  readonly beforeCall?: string;
  /** Text for the user before a call or the answer, in a message of its own between or after reasoning. */
  readonly preamble?: { readonly open: string; readonly close: string };
}

export type CallPart =
  | string
  | { readonly part: "name" }
  | { readonly part: "arguments" }
  /** Text that the model makes up, an id or an index: a regular expression without anchors. */
  | { readonly part: "id"; readonly pattern: string };

export type ArgumentStyle = JsonArguments | ParameterArguments | PythonArguments | BareKeyArguments;

/** One JSON object. Separators are the template's own, such as `", "` and `": "`. */
export interface JsonArguments {
  readonly style: "json";
  readonly itemSeparator: string;
  readonly keySeparator: string;
}

/**
 * Each top-level argument between markers: `open` + key + `middle` + value + `end.line` + `end.close` + `after`.
 * Strings are written as they are, everything else as JSON, maybe behind a `middle` of its own, for each
 * JSON type if it is a record.
 */
export interface ParameterArguments {
  readonly style: "parameters";
  readonly open: string;
  readonly middle: string;
  readonly middleOfOthers?: string | Readonly<Record<string, string>>;
  readonly end: ValueEnd;
  readonly after: string;
  /** A string may stand in `<![CDATA[` and `]]>`. */
  readonly hasCdata: boolean;
  /** Of JSON inside of a value. */
  readonly itemSeparator: string;
  readonly keySeparator: string;
}

/**
 * Where a value ends, for the grammar and for the parser: at `close`, which may hold `$key`. Where values stand on
 * lines of their own (`line` is a line break), `close` ends one at the beginning of a line; within a line only if one
 * of `followers` stands behind it, with at most blanks between them. Any other is the value's text.
 */
export interface ValueEnd {
  readonly close: string;
  readonly line: "" | "\n";
  /** What opens the next key, and what ends the call. */
  readonly followers: readonly string[];
}

/** `key=value` pairs, values as Python literals: `True`, `None`, quoted strings, lists, dicts. */
export interface PythonArguments {
  readonly style: "python";
  /** `json`: `true`, `false` and `null` are written so. */
  readonly words?: "json";
}

/**
 * An object whose keys have no quotes, at every depth, and whose strings stand between marks:
 * `{city:<escape>Rome<escape>,range:[1,2]}`. Nothing is escaped; no blanks.
 */
export interface BareKeyArguments {
  readonly style: "bare-keys";
  readonly stringMark: string;
}
