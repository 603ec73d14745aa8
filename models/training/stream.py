"""The endless training stream: groups of dialogues that share one system prompt and tool list.

Contract: `groups(tokenizer, seed, order)` yields (kind, prefix ids, rows, weights): `rows` is an (R, L) int array of token
ids that continue the prefix, `weights` is 1 where the model writes that token and else 0. Each row
starts with a fresh exchange and goes on with more turns until it is full. Streams of one `order`
yield the same kinds in the same order, so that workers in step have equal work.
"""
import random

import numpy as np

import behave_calls
import behave_files
import behave_paging
import behave_talk
import words as w
from render import render_prefix, render_turns

SYSTEMS = ("You are a helpful assistant.", "You are Fermata's small model.", "Use the tools when they help.", "You are a careful assistant. Answer briefly.", "You can read files with your tools.")
# name, share of the groups, rows, row length
RECIPES = [("copy", 1, 16, 256), ("talk", 4, 16, 256), ("calls", 42, 12, 320), ("files", 22, 10, 384), ("files_full", 18, 20, 384), ("paging", 7, 5, 768), ("paging_long", 0.5, 1, 4032)]
CUT = {"calls": 0.7, "files": 0.6, "files_full": 0.7}  # share of the exchanges that end with their last call


def system_text(rng):
    roll = rng.random()
    return None if roll < 0.6 else rng.choice(SYSTEMS) if roll < 0.85 else " ".join(w.sentence(rng) for _ in range(rng.randint(1, 3)))


def file_tools(rng, full):
    """The file system server's tools, all or some, alone or beside other tools; and their name map."""
    prefix = rng.choice(("", "", "filesystem_", "fs_", "files_", w.word(rng) + "_")) if rng.random() < (0.4 if full else 0.6) else ""
    tools = behave_files.filesystem_tools(prefix)
    if not full:
        needed = [t for t in tools if t["function"]["name"][len(prefix):] in ("list_directory", "read_text_file")]
        tools = needed + rng.sample([t for t in tools if t not in needed], rng.choice((0, 1, 2, 3, 4, 5)))
        rng.shuffle(tools)
    names = {t["function"]["name"] for t in tools}
    if rng.random() < 0.25:
        others = [t.tool for t in behave_calls.toolset(rng)[:3] if t.name not in names]
        tools = tools + others if rng.random() < 0.5 else others + tools

    def named(name):
        if prefix + name not in names:
            raise KeyError(name)
        return prefix + name

    return tools, named


def files_exchange(rng, named):
    while True:
        try:
            return behave_files.exchange(rng, named)
        except KeyError:
            continue


def scene(rng, kind):
    """(system text, tools, a function that makes one exchange)."""
    system = system_text(rng)
    if kind in ("copy", "talk"):
        copying = 0.85 if kind == "copy" else 0.2
        return system, [], lambda: behave_talk.exchange(rng, copying)
    if kind == "calls":
        tools = behave_calls.toolset(rng)
        return system, [t.tool for t in tools], lambda: behave_talk.exchange(rng) if rng.random() < 0.12 else behave_calls.exchange(rng, tools)
    if kind in ("files", "files_full"):
        tools, named = file_tools(rng, kind == "files_full")
        return system, tools, lambda: behave_talk.exchange(rng, 0.2) if rng.random() < 0.08 else files_exchange(rng, named)
    others = [t for t in behave_calls.toolset(rng)[: rng.choice((0, 0, 1, 2, 3))]]
    tools = [t.tool for t in others] + [behave_paging.tool(rng)]
    rng.shuffle(tools)
    high = rng.choice((2, 5, 10)) if kind == "paging" else 45
    return system, tools, lambda: behave_calls.exchange(rng, others) if others and rng.random() < 0.2 else behave_paging.exchange(rng, high)


def encode(tokenizer, pieces):
    """Token ids of the whole text and the 0/1 weight of each token.

    Pieces border on special tokens or newlines, where the tokenizer splits anyway, so encoding
    them apart gives the same ids as encoding the whole; evaluate.py --tokens checks that.
    """
    ids, weights = [], []
    for (text, written), encoding in zip(pieces, tokenizer.encode_batch([t for t, _ in pieces])):
        ids += encoding.ids
        weights += [int(written)] * len(encoding.ids)
    return ids, weights


def cut(turns):
    """The exchange up to its last call, so that more calls fit into a row."""
    calling = [i for i, m in enumerate(turns) if m.get("tool_calls")]
    return turns[: calling[-1] + 1] if calling else turns


def groups(tokenizer, seed, order, shares=None):
    rng, kinds = random.Random(seed), random.Random(order)
    odds = [shares.get(r[0], 0) if shares else r[1] for r in RECIPES]
    while True:
        kind, _, count, length = kinds.choices(RECIPES, odds)[0]
        system, tools, make = scene(rng, kind)
        prefix = tokenizer.encode(render_prefix(system, tools)).ids
        rows, weights = np.zeros((count, length), np.int64), np.zeros((count, length), np.int8)
        for row, weight in zip(rows, weights):
            at = 0
            while at < length:
                turns = make()
                if rng.random() < CUT.get(kind, 0):
                    turns = cut(turns)
                ids, marks = encode(tokenizer, render_turns(turns))
                ids, marks = ids[: length - at], marks[: length - at]
                row[at:at + len(ids)], weight[at:at + len(ids)] = ids, marks
                at += len(ids)
        yield kind, np.array(prefix, np.int64), rows, weights
