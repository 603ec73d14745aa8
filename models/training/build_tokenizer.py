"""Builds tokenizer.json: a byte-level BPE whose words split alike wherever they stand.

Contract: merges are learned in two stages. Stage one sees runs of letters only, so a word has the
same pieces after a space, a slash or a quote; that is what makes copying easy for a small model.
Stage two joins a space, `_`, `/` or `.` with whole common pieces, and JSON punctuation with itself.
No merge contains a newline next to anything else. Same input, same output.
"""
import argparse
import collections
import json
import os
import random
import re

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

import words
from render import HEAD, TAIL, dumps

HERE = os.path.dirname(os.path.abspath(__file__))
QWEN2 = r"""(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"""
CONTROL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
USER_DEFINED = ["<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>", "<think>", "</think>"]
PUNCTUATION = ['{"', '":', '",', '"}', '"}}', '}}', '{}', '{}}', '["', '"]', '"]}', '[]', '},', ' {', ' {"', ' "', ' [', ' ["', ' {}', '\\n', '\\"', '..', '...', '//', '://', '**', '**/', '##', '--', '---', ').', '".', "'.", '.,', ' (', ' -', ' =', ' #', '/*', '.*', '\n\n', '  ', '    ', '],', '"],', '?"', '.",', '"}},', '}},', '"]}},', '.)',  ' <']


COMMON = (
    "notes docs todo readme README report index plan data hello main project files work test src tmp home srv var opt etc "
    "txt md csv json log py ts js yaml html toml metadata eof start next output chunk lines summary says said tell delegate "
    "agent task weather Sorry error failed Fermata Here Hello What Which Please"
).split()


def byte_letters():
    """GPT-2's printable stand-ins for the 256 bytes."""
    keep = [*range(33, 127), *range(161, 173), *range(174, 256)]
    table, extra = {}, 0
    for b in range(256):
        table[b] = chr(b) if b in keep else chr(256 + extra)
        extra += b not in keep
    return table


def static_text():
    tools = json.load(open(os.path.join(HERE, "filesystem_tools.json"), encoding="utf8"))
    return HEAD + TAIL + "\n".join(dumps({"type": "function", "function": t}) for t in tools)


def stage_one(english, size):
    """Merges over runs of letters, from static text, the word list, names and English prose."""
    static = re.findall(r"[^\W\d_]+", static_text())
    rng = random.Random(1)
    corpus = (static + COMMON) * 400 + words.ALL_WORDS * 60 + words.NAMES * 20 + words.CITIES * 20 + words.VERBS * 100 + words.ADJECTIVES * 50
    corpus += [words.pseudoword(rng) for _ in range(6000)]
    counts = collections.Counter(re.findall(r"[^\W\d_]+", english))
    total = sum(counts.values())
    for w, n in counts.most_common(12000):
        corpus += [w] * max(1, round(n / total * 1500000))
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.train_from_iterator(corpus, trainers.BpeTrainer(vocab_size=size, initial_alphabet=list(byte_letters().values()), show_progress=False))
    return [tuple(m) for m in json.loads(tokenizer.to_str())["model"]["merges"]], tokenizer


def stage_two(first, english, size):
    """(prefix, piece) pairs, most frequent in static text and prose first."""
    counts = collections.Counter()
    for weight, text in ((40, static_text()), (1, english[:3_000_000])):
        for prefix, run in re.findall(r"([ _/.])([A-Za-z]+)", text):
            counts[prefix, first.encode(run).tokens[0]] += weight
    space = byte_letters()[32]
    pairs = [(space if p == " " else p, piece) for (p, piece), _ in counts.most_common(size * 3) if len(piece) > 1 or piece in "aAI"]
    return pairs[:size]


def split(text, merges):
    """What byte-pair encoding with these merges makes of one pre-token."""
    ranks = {pair: i for i, pair in enumerate(merges)}
    pieces = list(text)
    while True:
        found = [(ranks[pair], i) for i, pair in enumerate(zip(pieces, pieces[1:])) if pair in ranks]
        if not found:
            return pieces
        _, i = min(found)
        pieces[i:i + 2] = [pieces[i] + pieces[i + 1]]


def build(english, letters=3000, fused=900):
    merges, first = stage_one(english, letters)
    merges += stage_two(first, english, fused)
    table = byte_letters()
    for text in sorted(PUNCTUATION, key=len):
        text = "".join(table[b] for b in text.encode())
        pieces = split(text, merges)
        while len(pieces) > 1:
            merges.append((pieces[0], pieces[1]))
            pieces[:2] = [pieces[0] + pieces[1]]
    vocab = {c: i for i, c in enumerate(table.values())}
    for a, b in merges:
        vocab.setdefault(a + b, len(vocab))
    tokenizer = Tokenizer(models.BPE(vocab=vocab, merges=merges))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(QWEN2), behavior="isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
    ])
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(t, special=True, normalized=False) for t in CONTROL])
    tokenizer.add_tokens([AddedToken(t, normalized=False) for t in USER_DEFINED])
    return tokenizer


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("english", help="a few MB of English text, any; decides the pieces of common words")
    parser.add_argument("--output", default=os.path.join(HERE, "tokenizer.json"))
    args = parser.parse_args()
    tokenizer = build(open(args.english, encoding="utf8", errors="ignore").read())
    tokenizer.save(args.output)
    print("vocabulary", tokenizer.get_vocab_size(), "file system prompt", len(tokenizer.encode(static_text()).ids), "tokens")


if __name__ == "__main__":
    main()
