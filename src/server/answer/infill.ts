/** Prompts of models that were trained to write what stands between two texts ("fill in the middle"). */

import { FermataError } from "../../errors.ts";
import type { ServerServices } from "../services.ts";

/** What stands before the text before the gap, before the text behind it, and before the answer. */
interface Marks<Mark> {
  prefix: Mark;
  suffix: Mark;
  middle: Mark;
  /** Before another file's name and text, and before the repository's name. */
  file?: Mark;
  repository?: Mark;
}

/** As models spell them: Qwen2.5-Coder and CodeGemma, StarCoder and Granite, SantaCoder, DeepSeek, CodeLlama, GLM. */
const spellings: readonly Marks<string>[] = [
  {
    prefix: "<|fim_prefix|>",
    suffix: "<|fim_suffix|>",
    middle: "<|fim_middle|>",
    file: "<|file_sep|>",
    repository: "<|repo_name|>",
  },
  {
    prefix: "<fim_prefix>",
    suffix: "<fim_suffix>",
    middle: "<fim_middle>",
    file: "<file_sep>",
    repository: "<repo_name>",
  },
  { prefix: "<fim-prefix>", suffix: "<fim-suffix>", middle: "<fim-middle>" },
  { prefix: "<｜fim▁begin｜>", suffix: "<｜fim▁hole｜>", middle: "<｜fim▁end｜>" },
  { prefix: "▁<PRE>", suffix: "▁<SUF>", middle: "▁<MID>" },
  { prefix: "<|code_prefix|>", suffix: "<|code_suffix|>", middle: "<|code_middle|>" },
];

export interface Gap {
  prefix: string;
  suffix: string;
  /** The answer's beginning. */
  begun?: string;
  /** Other files, the least important first. */
  files?: readonly { name: string; text: string }[];
}

export class Infill {
  readonly #engine: ServerServices["engine"];
  readonly #chat: Pick<ServerServices["chat"], "guardText">;
  #marks: Promise<Marks<number> | null> | null = null;

  constructor({ engine, chat }: Pick<ServerServices, "engine" | "chat">) {
    this.#engine = engine;
    this.#chat = chat;
  }

  /**
   * What leaves room for the answer, a quarter of the context at most: of the text before the gap the end, of the text
   * behind it the beginning, a quarter of the room at least, and of the files those that fit. No special token is
   * recognized in any of them. @param maxTokens of the answer
   * @throws FermataError unsupported_value: the model was not trained for it
   */
  async prompt(
    { prefix, suffix, begun = "", files = [] }: Gap,
    contextSize: number,
    maxTokens = Infinity,
  ): Promise<Int32Array> {
    const room = contextSize - Math.min(maxTokens, contextSize >> 2);
    const marks = await (this.#marks ??= this.#findMarks());
    if (marks === null) {
      throw new FermataError(
        "unsupported_value",
        '"model" was not trained to fill in the middle: its vocabulary has no tokens for it. Load one that was, such as Qwen2.5-Coder, or send a prompt to /completion.',
        { param: "model" },
      );
    }
    const [before, behind, start] = await Promise.all(
      [prefix, suffix, begun].map((text) => this.#tokens(text)),
    );
    const ofTexts = Math.max(0, room - start!.length - 3);
    const suffixKept = behind!.slice(0, Math.max(ofTexts >> 2, ofTexts - before!.length));
    const prefixKept = before!.slice(Math.max(0, before!.length - ofTexts + suffixKept.length));
    const gap = [marks.prefix, ...prefixKept, marks.suffix, ...suffixKept, marks.middle, ...start!];
    return Int32Array.from([...(await this.#filesIn(files, marks, room - gap.length)), ...gap]);
  }

  async #filesIn(
    files: NonNullable<Gap["files"]>,
    marks: Marks<number>,
    room: number,
  ): Promise<number[]> {
    const { repository } = marks;
    const opening =
      repository === undefined ? [] : [repository, ...(await this.#tokens("project\n"))];
    let fitting: number[] = [];
    for (const { name, text } of files.toReversed()) {
      const title = marks.file === undefined ? `\n\n# ${name}\n` : `${name}\n`;
      const mark = marks.file === undefined ? [] : [marks.file];
      const tokens = [...mark, ...(await this.#tokens(title + text)), ...fitting];
      if (opening.length + tokens.length > room) break;
      fitting = tokens;
    }
    if (fitting.length === 0) return [];
    // The gap is in a file, too.
    const own = marks.file === undefined ? [] : [marks.file, ...(await this.#tokens("file\n"))];
    const all = [...opening, ...fitting, ...own];
    return all.length <= room ? all : [];
  }

  async #tokens(text: string): Promise<Int32Array> {
    if (text === "") return new Int32Array(0);
    const guarded = this.#chat.guardText(text);
    return await this.#engine.tokenize(guarded.text, guarded.guard, false);
  }

  /** Null: the vocabulary has none. */
  async #findMarks(): Promise<Marks<number> | null> {
    for (const { prefix, suffix, middle, file, repository } of spellings) {
      const found = await Promise.all([prefix, suffix, middle].map((mark) => this.#token(mark)));
      const [before, behind, between] = found;
      if (before === undefined || behind === undefined || between === undefined) continue;
      const [ofFile, ofRepository] = await Promise.all([
        this.#token(file),
        this.#token(repository),
      ]);
      return {
        prefix: before,
        suffix: behind,
        middle: between,
        ...(ofFile !== undefined && { file: ofFile }),
        ...(ofRepository !== undefined && { repository: ofRepository }),
      };
    }
    return null;
  }

  async #token(spelling: string | undefined): Promise<number | undefined> {
    if (spelling === undefined) return undefined;
    const tokens = await this.#engine.tokenize(spelling, "", false);
    return tokens.length === 1 ? tokens[0] : undefined;
  }
}
