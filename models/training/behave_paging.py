"""Behaviour 3: read a file in chunks until `eof`, then summarise it by its headings."""
import json

import words as w
from dialogue import calls, function_tool, say, user

NAME = "read_file_chunk"


def tool(rng):
    describe = lambda text: {"description": text} if rng.random() < 0.7 else {}
    properties = {
        "path": {"type": "string", **describe("Path of the file")},
        "start_line": {"type": "integer", **describe("First line, from 1")},
        "max_lines": {"type": "integer", **describe("How many lines to read")},
    }
    return function_tool(NAME, rng.choice(("Read a part of a file.", "Read a file in chunks of lines.", "Read lines from a text file, starting at start_line.")), {"type": "object", "properties": properties, "required": list(properties)})


def chunk_text(rng, high):
    heading = rng.choice(("#", "##", "##")) + " " + rng.choice(("", f"Phase {rng.randint(1, 9)}: ", f"{rng.randint(1, 9)}. ")) + w.phrase(rng, 1, 4).capitalize()
    body = [rng.choice((w.sentence, w.line, w.phrase))(rng) for _ in range(rng.randint(0, high))]
    body = [b for b in body if not b.startswith("#")]
    return heading, "\n".join([heading] + body) + rng.choice(("", "\n"))


def exchange(rng, high=5):
    path = rng.choice((w.file_name, w.file_name, w.path))(rng)
    size = rng.choice((250, 250, 100, 200, 50, 500, rng.randint(10, 400)))
    polite = rng.random() < 0.5
    ask = rng.choice(("summarize {p}", "Summarize {p}", "summarise the file {p}", "give me a summary of {p}", "read {p} and summarize it", "what is in {p}?", "tell me what {p} is about"))
    told = "" if size == 250 else f" Read {size} lines at a time." if rng.random() < 0.5 else f" Use chunks of {size} lines."
    if polite:
        ask = "please " + ask if rng.random() < 0.6 else "Please " + ask[0].lower() + ask[1:]
    text = ask.replace("{p}", path)
    turns = [user(text + ("." if told and text[-1] not in ".?" else "") + told)]
    headings, start, count = [], 1, rng.choice((1, 2, 2, 3, 3, 4))
    separators = rng.choice(((",", ":"), (",", ":"), (", ", ": ")))
    for i in range(count):
        last = i + 1 == count
        heading, body = chunk_text(rng, high)
        headings.append(heading.lstrip("# "))
        following = start + (rng.randint(1, size) if last else size if rng.random() < 0.8 else rng.randint(1, size))
        metadata = {"eof": last, "next_start": following}
        if rng.random() < 0.5:
            extra = {"path": path, "start_line": start, "lines": following - start, "total_lines": rng.randint(following, following + 900), "bytes": w.number(rng)}
            metadata = {**metadata, **{k: extra[k] for k in rng.sample(list(extra), rng.randint(1, 3))}}
            if rng.random() < 0.3:
                metadata = dict(sorted(metadata.items()))
        if last and rng.random() < 0.3:
            metadata["next_start"] = None
        intro = f"I'll open {path} in chunks..." if polite and i == 0 else None
        turns.append(calls((NAME, {"path": path, "start_line": start, "max_lines": size}), text=intro))
        turns.append({"role": "tool", "content": json.dumps({"metadata": metadata, "output": body}, ensure_ascii=False, separators=separators)})
        start = following
    turns.append(say(f"{path} covers:\n" + "\n".join(f"- {h}" for h in headings)))
    return turns
