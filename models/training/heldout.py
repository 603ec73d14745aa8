"""Held-out cases: another seed, and words, names and strings that training never drew.

Contract: `dialogues(seed, count)` yields (behaviour, messages, tools), messages in OpenAI form
(call ids, arguments as JSON strings). `cases(messages)` yields (messages before, expected turn)
for each assistant turn. Run as a script it writes the sample that ships as models/heldout.jsonl.
"""
import argparse
import json
import random

import behave_calls as bc
import behave_files as bf
import behave_paging as bp
import behave_talk as bt
import stream
import words as w
from known_tools import T
from render import dumps

SEED = 20261123


def known(rng, count):
    found = [bc.Known(rng, entry) for entry in rng.sample(T, count)]
    return list({t.name: t for t in {t.topic: t for t in found}.values()}.values())


def made_up(rng, count):
    found = [bc.MadeUp(rng) for _ in range(count)]
    return list({t.name: t for t in found}.values())


def with_tools(tools, turns):
    return turns, [t.tool for t in tools]


def choose(rng):
    tools = known(rng, rng.randint(1, 8))
    return with_tools(tools, bc.single(rng, tools))


def parallel(rng):
    tools = known(rng, rng.randint(1, 6))
    return with_tools(tools, rng.choice((bc.parallel, bc.two_cities))(rng, tools))


def results(rng):
    tools = known(rng, rng.randint(1, 6))
    return with_tools(tools, bc.ask_result(rng, tools))


def delegate(rng):
    tool = bc.Delegate(rng)
    tools = known(rng, rng.randint(1, 4)) + [tool]
    return with_tools(tools, bc.single(rng, [tool]))


def paging(rng):
    return bp.exchange(rng, 8), [bp.tool(rng)]


def files_with(function):
    def make(rng):
        prefix = "" if rng.random() < 0.7 else "filesystem_"
        return function(rng, lambda name: prefix + name), bf.filesystem_tools(prefix)
    return make


def talk(rng):
    return bt.exchange(rng, 0.3), []


def talk_with_tools(rng):
    tools = known(rng, rng.randint(1, 6))
    return with_tools(tools, bt.exchange(rng, 0.2))


def unseen(rng):
    tools = made_up(rng, rng.randint(1, 5))
    return with_tools(tools, bc.single(rng, tools))


BEHAVIOURS = {
    "choose": choose, "parallel": parallel, "paging": paging,
    "files_list_and_read": files_with(bf.list_and_read), "files_list": files_with(bf.list_only), "files_read": files_with(bf.read_only),
    "files_find": files_with(bf.find_by_description), "files_read_all": files_with(bf.read_all),
    "files_value": files_with(bf.value_in_file), "files_other": files_with(bf.other_tools),
    "results": results, "talk": talk, "talk_with_tools": talk_with_tools, "delegate": delegate, "unseen_tools": unseen,
}


def openai(turns):
    """The same messages with call ids, and arguments as JSON strings."""
    out, waiting, issued = [], [], 0
    for m in turns:
        m = dict(m)
        if m.get("tool_calls"):
            m["tool_calls"] = [{"id": f"call_{issued + i + 1}", "type": "function", "function": {"name": c["function"]["name"], "arguments": dumps(c["function"]["arguments"])}} for i, c in enumerate(m["tool_calls"])]
            waiting = [c["id"] for c in m["tool_calls"]]
            issued += len(waiting)
        elif m["role"] == "tool":
            m["tool_call_id"] = waiting.pop(0)
        out.append(m)
    return out


def dialogues(seed, count, behaviours=tuple(BEHAVIOURS), words="heldout"):
    """`words`: as words.score_with."""
    w.score_with(words)
    for behaviour in behaviours:
        rng = random.Random(f"{seed} {behaviour}")
        for _ in range(count):
            turns, tools = BEHAVIOURS[behaviour](rng)
            system = stream.system_text(rng) if rng.random() < 0.3 else None
            yield behaviour, ([{"role": "system", "content": system}] if system else []) + openai(turns), tools


def cases(messages):
    for i, m in enumerate(messages):
        if m["role"] == "assistant":
            calls = [{"name": c["function"]["name"], "arguments": json.loads(c["function"]["arguments"])} for c in m.get("tool_calls") or []]
            yield messages[:i], {"content": m.get("content"), "tool_calls": calls}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("output")
    parser.add_argument("--dialogues", type=int, default=4, help="per behaviour; a tenth of that with the file system tools")
    args = parser.parse_args()
    seen, lines = {}, []
    for behaviour, messages, tools in dialogues(SEED + 1, args.dialogues):
        seen[behaviour] = seen.get(behaviour, 0) + 1
        if behaviour.startswith("files") and seen[behaviour] > max(1, args.dialogues // 10):
            continue
        lines += [dumps({"behaviour": behaviour, "messages": before, "tools": tools, "expect": expect}) for before, expect in cases(messages)]
    open(args.output, "w", encoding="utf8").write("\n".join(lines) + "\n")
    print(len(lines), "cases")


if __name__ == "__main__":
    main()
