/** The engine as endpoints of texts use it. */

import { usage } from "./fake-figures.ts";
import type {
  GenerateRequest,
  Generation,
  GenerationEvent,
  Grammar,
  GrammarSource,
} from "../../src/engine/types.ts";

/** A token is a character's code; generates `says`, a token at a time. */
export class FakeTextEngine {
  says = "yes";
  /** Generated behind it, without a text. */
  endToken: number | undefined;
  /** What a prompt that begins with this character is refused with. */
  readonly refusals = new Map<string, Error>();
  readonly requests: GenerateRequest[] = [];

  /** Special tokens by their spelling, where a text is nothing else. */
  readonly specials = new Map([
    ["<|fim_prefix|>", 1000],
    ["<|fim_suffix|>", 1001],
    ["<|fim_middle|>", 1002],
    ["<|file_sep|>", 1003],
    ["<|repo_name|>", 1004],
  ]);

  readonly tokenize = async (text: string): Promise<Int32Array> => {
    const special = this.specials.get(text);
    return special === undefined
      ? Int32Array.from(text, (character) => character.charCodeAt(0))
      : Int32Array.of(special);
  };

  readonly detokenize = (tokens: Int32Array): string => String.fromCharCode(...tokens);

  readonly tokenBytes = (token: number): Uint8Array =>
    new TextEncoder().encode(String.fromCharCode(token));

  /** Of what a grammar was asked for; none of them holds anything. */
  readonly grammars: GrammarSource[] = [];

  readonly compileGrammar = async (source: GrammarSource): Promise<Grammar> => {
    this.grammars.push(source);
    const check = () => ({
      accepted: 0,
      complete: false,
      error: "",
      maskMicroseconds: new Float64Array(),
    });
    return { bytes: 0, compileMicroseconds: 0, check };
  };

  readonly generate = (request: GenerateRequest): Generation => {
    this.requests.push(request);
    const refusal = this.refusals.get(this.detokenize(request.prompt.subarray(0, 1)));
    if (refusal !== undefined) throw refusal;
    const said = this.says.slice(0, request.maxTokens);
    const reason = said === this.says ? "end" : "length";
    const { prompt, topLogprobs, promptLogprobs } = request;
    const { length } = prompt;
    const { endToken } = this;
    let isCancelled = false;
    async function* events(): AsyncGenerator<GenerationEvent, void, void> {
      yield { type: "progress", done: length - 1, total: length - 1, cached: 1 };
      if (promptLogprobs !== undefined)
        request.onPromptLogprobs?.(
          Array.from(prompt.subarray(1), (token) => {
            const top: [number, number][] = [
              [120, -0.125],
              [token, -0.5],
            ];
            return { token, logprob: -0.5, top: top.slice(0, promptLogprobs) };
          }),
        );
      const drawn = Array.from(said, (text) => ({ text, token: text.charCodeAt(0) }));
      if (endToken !== undefined && reason === "end") drawn.push({ text: "", token: endToken });
      for (const { text, token } of drawn) {
        if (isCancelled) break;
        const top: [number, number][] = [[token, -0.25]];
        const logprobs = [{ token, logprob: -0.25, top: top.slice(0, topLogprobs) }];
        yield {
          type: "text",
          text,
          tokens: Int32Array.of(token),
          ...(topLogprobs === undefined ? {} : { logprobs }),
        };
      }
      const counts = { ...usage, resumedTokens: 0, promptTokens: prompt.length };
      yield {
        type: "finish",
        reason: isCancelled ? "cancelled" : reason,
        stopString: "",
        usage: { ...counts, generatedTokens: said.length },
      };
    }
    return Object.assign(events(), {
      id: 1,
      tokens: [],
      pause() {},
      extend() {},
      resume() {},
      release() {},
      cancel() {
        isCancelled = true;
      },
    });
  };
}
