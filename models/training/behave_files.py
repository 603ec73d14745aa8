"""Behaviour 4: list and read files with the tools of @modelcontextprotocol/server-filesystem.

Contract: every function takes (rng, tool) and returns one self-contained exchange; `tool` maps the
server's own tool name to the name in the prompt (a server prefix may be in front).
"""
import json
import os

import words as w
from dialogue import calls, function_tool, json_text, listed, result, say, sorry, user

TOOLS = json.load(open(os.path.join(w.HERE, "filesystem_tools.json"), encoding="utf8"))


def filesystem_tools(prefix=""):
    return [function_tool(prefix + t["name"], t["description"], t["parameters"]) for t in TOOLS]


def quoted(rng, text):
    roll = rng.random()
    return text if roll < 0.8 else f"`{text}`" if roll < 0.9 else f'"{text}"'


def folder_words(rng, folder):
    """How the user writes a folder."""
    if folder == ".":
        return rng.choice(("the current directory", "this folder", "the current folder", "."))
    return rng.choice(("", "", "", "the folder ", "the directory ", "folder ")) + quoted(rng, folder)


def listing(rng, files):
    folders = [w.identifier(rng) for _ in range(rng.choice((0, 0, 1, 2)))]
    entries = [("FILE", f) for f in files] + [("DIR", d) for d in folders]
    if rng.random() < 0.6:
        entries.sort(key=lambda e: e[1])
    else:
        rng.shuffle(entries)
    return entries, "\n".join(f"[{kind}] {name}" for kind, name in entries)


def says(path, text):
    text = text.rstrip("\n")
    return f"The file {path} says:\n{text}" if text else f"The file {path} is empty."


def contains(folder, entries):
    if not entries:
        return f"The folder {folder} is empty."
    return f"The folder {folder} contains:\n" + "\n".join(f"- {name}" + (" (directory)" if kind == "DIR" else "") for kind, name in entries)


def list_turns(rng, tool, folder, entries, text):
    return [calls((tool("list_directory"), {"path": folder})), result(text)]


def read_turns(rng, tool, folder, files, high=8):
    """Read some files in one round and repeat what they say; sometimes a read fails."""
    paths = [w.join(folder, f) for f in files]
    turns, answers = [calls(*((tool("read_text_file"), {"path": p}) for p in paths))], []
    for path in paths:
        if rng.random() < 0.04:
            error = read_error(rng, path)
            turns.append(result(error))
            answers.append(f"Sorry, I could not read {path}: {error}")
        else:
            text = "" if rng.random() < 0.02 else w.content(rng, high)
            turns.append(result(text))
            answers.append(says(path, text))
    return turns + [say("\n\n".join(answers))]


def read_error(rng, path):
    return rng.choice((
        f"ENOENT: no such file or directory, open '{path}'",
        f"Access denied - path outside allowed directories: {path} not in {w.directory(rng)}",
        f"EACCES: permission denied, open '{path}'",
        f"Error: {w.phrase(rng)}",
    ))


LIST = ("List", "Show", "Show me", "Please list", "list", "Can you list", "First list", "Look at", "Could you list", "I want to see")
THEN = (", then read {f} and tell me what it says", ", then read {f}", " and read {f}", " and then read {f}", ", then open {f}", ", read {f} and tell me what it says", " and tell me what {f} says", ", then show me {f}", ". Then read {f}", ". Then read {f} and tell me what it says", ", and after that read {f} to me", " and tell me what is in {f}", ", open {f} and repeat its content")


def end(rng, text):
    return text + (rng.choice((".", ".", ".", "", "!", " please.")) if text[-1] not in ".?!" else "")


def list_and_read(rng, tool):
    folder, files = w.directory(rng), w.file_names(rng, rng.randint(1, 6))
    entries, text = listing(rng, files)
    chosen = rng.sample(files, 1 if len(files) == 1 or rng.random() < 0.75 else 2)
    where = folder_words(rng, folder)
    if len(chosen) == 2 and len(files) == 2 and rng.random() < 0.6:
        chosen = [name for kind, name in entries if kind == "FILE"]
        then = rng.choice((", then read both files", " and read both", ", then read both and tell me what they say", " and tell me what both files say"))
    else:
        then = rng.choice(THEN).replace("{f}", listed([quoted(rng, f) for f in chosen]))
    ask = end(rng, f"{rng.choice(LIST)} {rng.choice(('the files in', 'the files in', 'what is in', 'the contents of', 'all files in'))} {where}{then}")
    return [user(ask)] + list_turns(rng, tool, folder, entries, text) + read_turns(rng, tool, folder, chosen)


def read_all(rng, tool):
    """Read whatever files the listing shows."""
    folder, files = w.directory(rng), w.file_names(rng, rng.randint(1, 2))
    entries, text = listing(rng, files)
    order = [name for kind, name in entries if kind == "FILE"]
    where = folder_words(rng, folder)
    ask = rng.choice((f"Read all the files in {where}", f"Read every file in {where} and tell me what they say", f"List {where} and read all files", f"What do the files in {where} say?"))
    return [user(end(rng, ask))] + list_turns(rng, tool, folder, entries, text) + read_turns(rng, tool, folder, order, 4)


def list_only(rng, tool):
    folder, files = w.directory(rng), w.file_names(rng, rng.randint(0, 7)) if rng.random() < 0.95 else []
    entries, text = listing(rng, files)
    where = folder_words(rng, folder)
    ask = rng.choice((f"What files are in {where}?", f"List the files in {where}", f"List {where}", f"What is in {where}?", f"Show me the files in {where}", f"Which files are there in {where}?", f"What's in {where}?", f"list all files in {where}", f"Which files does {where} contain?", f"What files are there in {where}?", f"Can you show me what is in {where}?", f"What do we have in {where}?", f"ls {where}"))
    turns = [user(end(rng, ask))] + list_turns(rng, tool, folder, entries, text)
    if rng.random() < 0.06:
        error = rng.choice((f"ENOENT: no such file or directory, scandir '{folder}'", f"Access denied - path outside allowed directories: {folder} not in {w.directory(rng)}"))
        return turns[:2] + [result(error), sorry(f"list {folder}", error)]
    turns.append(say(contains(folder, entries)))
    files = [name for kind, name in entries if kind == "FILE"]
    if files and rng.random() < 0.5:
        chosen = rng.choice(files)
        turns.append(user(rng.choice((f"Now read {chosen}.", f"Read {chosen}", f"What does {chosen} say?", f"Please open {chosen}", f"Tell me what {chosen} says", f"And what is in {chosen}?"))))
        turns += read_turns(rng, tool, folder, [chosen])
    return turns


def read_only(rng, tool):
    folder = w.directory(rng)
    files = w.file_names(rng, 1 if rng.random() < 0.7 else 2)
    both = listed([quoted(rng, w.join(folder, f)) for f in files])
    if rng.random() < 0.35 and folder != ".":
        both = listed(files) + " in " + folder_words(rng, folder)
    ask = rng.choice((f"Read {both}", f"read {both}", f"What does {both} say?", f"Open {both} and tell me what it says", f"Please read {both}", f"Show me the contents of {both}", f"Tell me what is in {both}", f"Can you read {both} for me?", f"Read {both} and repeat it word for word", f"Read the {both} file", f"Read the file {both}", f"Open the file {both}", f"I want to know what {both} says"))
    return [user(end(rng, ask))] + read_turns(rng, tool, folder, files, 20 if rng.random() < 0.15 else 8)


def find_by_description(rng, tool):
    """The user describes a file's name; the listing shows which one is meant."""
    folder = w.directory(rng)
    topics = rng.sample(w.WORDS, 2 * rng.randint(2, 5))
    pairs = [topics[i:i + rng.choice((1, 2))] for i in range(0, len(topics), 2)]
    files = [rng.choice("-_").join(p) + "." + rng.choice(w.EXTENSIONS) for p in pairs]
    entries, text = listing(rng, files)
    i = rng.randrange(len(files))
    topic, where = " ".join(pairs[i]), folder_words(rng, folder)
    ask = rng.choice((f"Find the file about {topic} in {where} and read it", f"In {where} there is a file about the {topic}. What does it say?", f"Look in {where} and read the file about {topic}", f"Which file in {where} is about {topic}? Read it to me", f"Read the {topic} file in {where}", f"There should be a file on {topic} in {where}, read it and tell me what it says"))
    return [user(end(rng, ask))] + list_turns(rng, tool, folder, entries, text) + read_turns(rng, tool, folder, [files[i]])


def value_in_file(rng, tool):
    """Read a file of keys and values and answer with one value."""
    path = w.path(rng)
    keys = rng.sample(w.WORDS, rng.randint(2, 6))
    sep = rng.choice((": ", "=", " = "))
    values = [str(rng.choice((w.word, w.number, w.date, w.name, w.phrase, w.city))(rng)) for _ in keys]
    i = rng.randrange(len(keys))
    ask = rng.choice((f"What is the {keys[i]} in {path}?", f"Read {path} and tell me the {keys[i]}", f"Which {keys[i]} does {path} give?", f"Look up the {keys[i]} in {path}"))
    text = "\n".join(k + sep + v for k, v in zip(keys, values)) + "\n"
    turns = [user(end(rng, ask)), calls((tool("read_text_file"), {"path": path})), result(text), say(f"The {keys[i]} is {values[i]}.")]
    if rng.random() < 0.4:
        j = rng.randrange(len(keys))
        turns += [user(rng.choice((f"And the {keys[j]}?", f"What is the {keys[j]}?", f"Tell me the {keys[j]} too."))), say(f"The {keys[j]} is {values[j]}.")]
    return turns


def other_tools(rng, tool):
    """The server's other tools: write, move, search, create, info, head and tail."""
    path, folder, n = w.path(rng), w.directory(rng), rng.randint(1, 60)
    pick = rng.randrange(9)
    if pick == 0:
        text = rng.choice((w.phrase, w.phrase, w.sentence, w.sentence, w.awkward))(rng)
        ask = rng.choice((f"Write '{text}' to {path}", f"Save this text in {path}: {text}", f"Create the file {path} with the content: {text}"))
        return [user(ask), calls((tool("write_file"), {"path": path, "content": text})), result(f"Successfully wrote to {path}"), say(f"I wrote the file {path}.")]
    if pick == 1:
        ask = rng.choice((f"Create the folder {folder}", f"Make a directory {folder}", f"create a new directory at {folder}"))
        return [user(end(rng, ask)), calls((tool("create_directory"), {"path": folder})), result(f"Successfully created directory {folder}"), say(f"I created the folder {folder}.")]
    if pick == 2:
        to = w.path(rng)
        ask = rng.choice((f"Move {path} to {to}", f"Rename {path} to {to}", f"move the file {path} to {to}"))
        return [user(end(rng, ask)), calls((tool("move_file"), {"source": path, "destination": to})), result(f"Successfully moved {path} to {to}"), say(f"I moved {path} to {to}.")]
    if pick == 3:
        pattern = rng.choice((f"**/*.{rng.choice(w.EXTENSIONS)}", f"*.{rng.choice(w.EXTENSIONS)}", f"*{w.word(rng)}*"))
        found = [w.join(folder, f) for f in w.file_names(rng, rng.randint(0, 4))]
        ask = rng.choice((f"Search {folder} for {pattern}", f"Find files matching {pattern} in {folder}", f"Which files in {folder} match {pattern}?"))
        answer = "I found:\n" + "\n".join(f"- {f}" for f in found) if found else "I found no matching files."
        return [user(end(rng, ask)), calls((tool("search_files"), {"path": folder, "pattern": pattern})), result("\n".join(found) or "No matches found"), say(answer)]
    if pick == 4:
        size, day = w.number(rng), w.date(rng)
        ask = rng.choice((f"How big is {path}?", f"What is the size of {path}?", f"Give me the size of the file {path}"))
        info = f"size: {size}\ncreated: {day}\nmodified: {w.date(rng)}\naccessed: {w.date(rng)}\nisDirectory: false\nisFile: true\npermissions: {rng.choice((644, 600, 755))}"
        return [user(end(rng, ask)), calls((tool("get_file_info"), {"path": path})), result(info), say(f"The size of {path} is {size} bytes.")]
    if pick in (5, 6):
        side = ("head", "first") if pick == 5 else ("tail", "last")
        text = w.lines(rng, 1, 5)
        ask = rng.choice((f"Show me the {side[1]} {n} lines of {path}", f"Read the {side[1]} {n} lines of {path}", f"What are the {side[1]} {n} lines in {path}?"))
        return [user(end(rng, ask)), calls((tool("read_text_file"), {"path": path, side[0]: n})), result(text), say(f"The {side[1]} {n} lines of {path} are:\n{text}")]
    if pick == 7:
        allowed = w.directory(rng)
        ask = rng.choice(("Which directories are you allowed to access?", "Which folders may you use?", "What directories can you read?", "List the allowed directories"))
        return [user(end(rng, ask)), calls((tool("list_allowed_directories"), {})), result(f"Allowed directories:\n{allowed}"), say(f"I may use:\n- {allowed}")]
    files = w.file_names(rng, rng.randint(1, 4))
    sized = "\n".join(f"[FILE] {f.ljust(30)} {rng.randint(1, 999)} B" for f in files)
    ask = rng.choice((f"List {folder} with sizes", f"Show the sizes of the files in {folder}", f"How large are the files in {folder}?"))
    return [user(end(rng, ask)), calls((tool("list_directory_with_sizes"), {"path": folder})), result(sized), say("These are the sizes:\n" + "\n".join(f"- {' '.join(line.split()[1:2])}: {' '.join(line.split()[2:])}" for line in sized.split("\n")))]


CHOICES = [(list_and_read, 9), (list_only, 4), (read_only, 6), (find_by_description, 3), (value_in_file, 2), (other_tools, 5), (read_all, 4)]


def exchange(rng, tool):
    function = rng.choices([f for f, _ in CHOICES], [n for _, n in CHOICES])[0]
    return function(rng, tool)
