import { expect, test } from "vitest";
import { AnswerTokens } from "../../../src/chat/answer/answer-tokens.ts";
import { qwen } from "../../../src/chat/formats/formats.ts";
import { OutputParser } from "../../../src/chat/parser/output-parser.ts";
import type { ContentToken } from "../../../src/chat/types.ts";

/** Texts as tokens, one each; what the content's log-probabilities name. */
function attribute(pieces: string[], released: string[] = pieces) {
  const encoder = new TextEncoder();
  const answer = new AnswerTokens((token) => encoder.encode(pieces[token]));
  const parser = new OutputParser({
    format: qwen,
    reasoning: "split",
    offered: new Map([["f", {}]]),
  });
  const told: [text: string, tokens: string[]][] = [];
  const tell = (events: ReturnType<OutputParser["push"]>): void => {
    for (const event of answer.attribute(events)) {
      if (event.type === "content") told.push([event.text, texts(event.logprobs ?? [])]);
    }
  };
  pieces.forEach((_, token) => {
    const text = released[token] ?? "";
    answer.add(text, [{ token, logprob: -1, top: [] }]);
    tell(parser.push(text));
  });
  tell(parser.finish(true));
  return told;
}

function texts(tokens: ContentToken[]): string[] {
  return tokens.map(({ bytes }) => new TextDecoder().decode(bytes));
}

test("content has its own tokens, reasoning and markers none", () => {
  expect(
    attribute(
      ["<think>", "I", " think", "</think>", "\n\n", "think", " I", ".", "<|im_end|>"],
      ["<think>", "I", " think", "</think>", "\n\n", "think", " I", ".", ""],
    ),
  ).toEqual([
    ["think", ["think"]],
    [" I", [" I"]],
    [".", ["."]],
  ]);
});

test("text that is held back brings all its tokens when it comes", () => {
  expect(attribute(["a", "<", "to", "ol", "x"])).toEqual([
    ["a", ["a"]],
    ["<toolx", ["<", "to", "ol", "x"]],
  ]);
});

test("a character or a stop string's beginning spread over tokens", () => {
  expect(attribute(["A", "B", "C"], ["", "", "é"])).toEqual([["é", ["A", "B", "C"]]]);
  expect(attribute(["x", "EN", "ED", "y"], ["x", "", "ENED", "y"])).toEqual([
    ["x", ["x"]],
    ["ENED", ["EN", "ED"]],
    ["y", ["y"]],
  ]);
});

test("calls have none", () => {
  const call = ["<tool_call>", '{"name": "f", "arguments": {"a', '": 1}}', "</tool_call>"];
  expect(attribute(["Look", ":", "\n", ...call]).flatMap(([, tokens]) => tokens)).toEqual(
    expect.arrayContaining(["Look", ":"]),
  );
  expect(attribute(call)).toEqual([]);
});
