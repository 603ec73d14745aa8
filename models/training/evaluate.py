"""Scores a GGUF through llama.cpp on held-out dialogues, greedily, one assistant turn at a time.

A turn's calls are exact if names and arguments are JSON-equal, in order, with no call missing or
added. An answer is exact if its text is equal. A scenario succeeds if every turn of its dialogue is
right, call turns and answers both. `--tokens` compares llama.cpp's token ids with those that training
used, and the rendered text with what @huggingface/jinja makes of chat_template.jinja.
"""
import argparse
import json
import os
import re
import subprocess
import sys

from tokenizers import Tokenizer

import heldout
import stream
from render import render, render_prompt

HERE = os.path.dirname(os.path.abspath(__file__))
CALL = re.compile(r"<tool_call>\n(.*?)\n</tool_call>", re.S)


class Generator:
    """generate.mjs as a child process; `node_folder` has node-llama-cpp installed."""

    def __init__(self, model, node_folder, threads=1):
        command = ["node", os.path.join(HERE, "generate.mjs"), os.path.abspath(model), str(threads)]
        self.child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=node_folder)

    def ask(self, **task):
        self.child.stdin.write(json.dumps(task) + "\n")
        self.child.stdin.flush()
        return json.loads(self.child.stdout.readline())


def parse(text):
    """Generated text as {"content", "tool_calls"}; a call that is not JSON becomes None."""
    calls = []
    for body in CALL.findall(text):
        try:
            call = json.loads(body)
            calls.append({"name": call["name"], "arguments": call["arguments"]})
        except (ValueError, KeyError, TypeError):
            calls.append(None)
    content = text.split("<tool_call>")[0].rstrip("\n") if "<tool_call>" in text else text
    return {"content": content or None, "tool_calls": calls}


def right(expect, got):
    if expect["tool_calls"] or got["tool_calls"]:
        return expect["tool_calls"] == got["tool_calls"]
    return expect["content"] == got["content"]


def score(generator, seed, count, behaviours, words, failures):
    """Per behaviour: [right, all] of call turns, answer turns and whole dialogues."""
    table = {}
    for behaviour, messages, tools in heldout.dialogues(seed, count, behaviours, words):
        row = table.setdefault(behaviour, {"calls": [0, 0], "answers": [0, 0], "scenarios": [0, 0]})
        whole = True
        for before, expect in heldout.cases(messages):
            text = generator.ask(prompt=render_prompt(before, tools), max=1500)["text"]
            fine = right(expect, parse(text))
            part = row["calls" if expect["tool_calls"] else "answers"]
            part[0] += fine
            part[1] += 1
            whole = whole and fine
            if not fine:
                failures.append({"behaviour": behaviour, "asked": before[-1]["content"], "expect": expect, "got": text})
        row["scenarios"][0] += whole
        row["scenarios"][1] += 1
    return table


def same_prompts(generator, node_folder, seed, count):
    """(dialogues, equal texts, equal token ids): render.py against @huggingface/jinja, stream.encode against llama.cpp."""
    tokenizer = Tokenizer.from_file(os.path.join(HERE, "tokenizer.json"))
    found = [(m, t) for _, m, t in heldout.dialogues(seed, count)]
    tasks = "\n".join(json.dumps({"messages": m, "tools": t, "prompt": False}) for m, t in found)
    command = ["node", os.path.join(HERE, "check_template.mjs"), os.path.join(HERE, "chat_template.jinja")]
    rendered = subprocess.run(command, input=tasks, text=True, capture_output=True, check=True, cwd=node_folder).stdout.splitlines()
    texts = ids = 0
    for (messages, tools), line in zip(found, rendered, strict=True):
        pieces = render(messages, tools)
        texts += "".join(text for text, _ in pieces) == json.loads(line)
        ids += generator.ask(tokenize=json.loads(line))["ids"] == stream.encode(tokenizer, pieces)[0]
    return len(found), texts, ids


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", help="GGUF file")
    parser.add_argument("--node-folder", default=".", help="folder whose node_modules has node-llama-cpp and @huggingface/jinja")
    parser.add_argument("--dialogues", type=int, default=50, help="per behaviour")
    parser.add_argument("--behaviours", default=",".join(heldout.BEHAVIOURS))
    parser.add_argument("--words", choices=("heldout", "train"), default="heldout", help="values of words that training never draws, or new values of those it does")
    parser.add_argument("--seed", type=int, default=heldout.SEED)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--tokens", type=int, metavar="N", help="compare texts and token ids of N dialogues per behaviour instead")
    parser.add_argument("--failures", help="write what went wrong to this file")
    parser.add_argument("--output", help="write the scores as JSON")
    args = parser.parse_args()
    generator = Generator(args.model, args.node_folder, args.threads)
    if args.tokens:
        print("dialogues %d, equal texts %d, equal token ids %d" % same_prompts(generator, args.node_folder, args.seed, args.tokens))
        return
    failures = []
    table = score(generator, args.seed, args.dialogues, args.behaviours.split(","), args.words, failures)
    known = [row for behaviour, row in table.items() if behaviour != "unseen_tools"]
    table["all but unseen_tools"] = {kind: [sum(row[kind][i] for row in known) for i in (0, 1)] for kind in ("calls", "answers", "scenarios")}
    for behaviour, row in table.items():
        shown = [f"{kind} {a}/{b} ({100 * a / b:.1f}%)" for kind, (a, b) in row.items() if b]
        print(f"{behaviour:22}", "  ".join(shown))
    if args.failures:
        with open(args.failures, "w", encoding="utf8") as f:
            f.writelines(json.dumps(x, ensure_ascii=False) + "\n" for x in failures)
    if args.output:
        json.dump(table, open(args.output, "w"), indent=1)
    sys.stdout.flush()


if __name__ == "__main__":
    main()
