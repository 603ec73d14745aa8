export interface ParameterCalls {
  /** Before the name, or "". */
  nameOpen: string;
  /** Characters that end the name; `<` is also the beginning of what follows. */
  nameEnd: string;
  keyOpen: string;
  keyClose: string;
  /** After the key, before the value's type; `string` is what it says of strings. Default: none. */
  keyAttribute?: { open: string; string: string };
  /** Between key and value, or "". */
  valueOpen: string;
  /** `$key` in it is the key. */
  valueClose: string;
  /** After the last parameter, or "" where only the call's own marker follows. */
  end: string;
  /** One line break at each end of a value is the format's. */
  valueOnLines: boolean;
  /** A value may stand in `<![CDATA[` and `]]>`. */
  hasCdata?: boolean;
  /** What ends a call, in this order: at the end of all text it ends a value without `valueClose`, too. */
  implicitEnds?: readonly string[];
  /** The next call's opening, for the same. */
  next?: string;
  /** Stands before each tag of a value that is written as elements. */
  elementMark?: string;
  /** Only offered tools are called. */
  offeredOnly?: boolean;
}
