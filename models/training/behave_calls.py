"""Behaviours 1, 2, 5 and 7: choose tools, copy arguments, call in parallel, answer, delegate."""
import json

import words as w
from dialogue import calls, function_tool, json_text, result, say, sorry, user
from known_tools import T
from random_tools import MadeUp, object_schema, said, schema, value

AGENTS = "researcher writer coder reviewer planner tester helper editor analyst translator critic librarian".split()
CONDITIONS = "sunny cloudy rainy windy snowy foggy".split()


class Known:
    """An entry of known_tools.T."""

    def __init__(self, rng, entry):
        names, self.description, self.parameters, self.asks, self.keys, self.answer = entry
        self.name, self.topic = rng.choice(names), names[0]
        properties = {p: schema(spec[0], spec[1] if rng.random() < 0.8 else None) for p, spec in self.parameters.items()}
        required = [p for p, spec in self.parameters.items() if len(spec) == 2]
        self.tool = function_tool(self.name, self.description, object_schema(rng, properties, required))

    def request(self, rng):
        slots, arguments = {}, {}
        for p, spec in self.parameters.items():
            if len(spec) == 3 and rng.random() < 0.5:
                slots[p] = ""
                continue
            arguments[p] = value(rng, spec[0])
            slots[p] = (spec[2] if len(spec) == 3 else "{%s}" % p).replace("{%s}" % p, said(arguments[p]))
        ask = rng.choice(self.asks).format(**slots)
        if self.keys is None:
            text = w.content(rng, 5)
            return ask, arguments, text, f"The file {arguments['path']} says:\n{text.rstrip()}"
        out = {k: arguments[kind[1:]] if isinstance(kind, str) and kind[0] == "=" else value(rng, kind) for k, kind in self.keys.items()}
        shown = {**{p: said(v) for p, v in arguments.items()}, **{k: said(v) for k, v in out.items()}}
        return ask, arguments, out, self.answer.format(**shown)


class Delegate:
    """Hand a task to another agent."""

    def __init__(self, rng):
        self.name, self.who, self.what = rng.choice((("delegate", "agent", "task"), ("delegate", "agent", "task"), ("delegate_task", "agent", "task"), ("ask_agent", "name", "request"), ("spawn_agent", "agent", "prompt")))
        self.agents = rng.sample(AGENTS, rng.randint(2, 4)) if rng.random() < 0.8 else [w.word(rng) for _ in range(3)]
        description = rng.choice(("Delegate a task to another agent.", "Hand a task to a sub-agent and return its answer.", f"Run a task with one of the agents: {', '.join(self.agents)}."))
        kind = self.agents if rng.random() < 0.6 else "word"
        self.tool = function_tool(self.name, description, object_schema(rng, {self.who: schema(kind, rng.choice((None, "Name of the agent"))), self.what: schema("text", rng.choice((None, "What the agent has to do")))}, [self.who, self.what]))

    def request(self, rng):
        agent = rng.choice(self.agents)
        task = rng.choice((f"{rng.choice(('summarize', 'write about', 'find', 'check', 'review', 'count', 'explain', 'read', 'translate', 'fix'))} {w.phrase(rng)}", f"read {w.path(rng)} and summarize it", f"{w.word(rng)} the {w.word(rng)} for {w.name(rng)}"))
        ask = rng.choice((f"Ask the {agent} to {task}", f"Delegate to the {agent}: {task}", f"Let the {agent} {task}", f"Tell the {agent} to {task}", f"Have the {agent} {task}", f"Delegate this task to the agent {agent}: {task}"))
        text = w.sentence(rng)
        return ask, {self.who: agent, self.what: task}, text, f"The {agent} says: {text}"


def toolset(rng, made_up=0.12, delegate=0.25):
    """One to eight tools with distinct names and descriptions."""
    count = rng.choice((1, 1, 2, 2, 3, 3, 4, 5, 6, 8))
    found, topics = {}, set()
    if rng.random() < delegate:
        tool = Delegate(rng)
        found[tool.name] = tool
    while len(found) < count:
        tool = MadeUp(rng) if rng.random() < made_up else Known(rng, rng.choice(T))
        if tool.topic not in topics and tool.name not in found:
            found[tool.name] = tool
            topics.add(tool.topic)
    out = list(found.values())
    rng.shuffle(out)
    return out


def as_text(rng, out):
    return out if isinstance(out, str) else json_text(rng, out)


def end(rng, ask, answerable="?"):
    return ask if ask[-1] in ".?!" else ask + rng.choice(("", ".", "."))


def single(rng, tools):
    tool = rng.choice(tools)
    ask, arguments, out, answer = tool.request(rng)
    turns = [user(end(rng, ask) if isinstance(tool, MadeUp) else ask), calls((tool.name, arguments))]
    if rng.random() < 0.08:
        error = rng.choice((f"Error: {w.phrase(rng)}", f"{w.word(rng)} failed with code {w.number(rng)}", f"timeout after {w.number(rng)} ms", f"not found: {w.word(rng)}"))
        return turns + [result(error), say(f"Sorry, {tool.name} failed: {error}")]
    return turns + [result(as_text(rng, out)), say(answer)]


def parallel(rng, tools):
    """Two calls in one round, of one tool or of two."""
    chosen = [rng.choice(tools)] * 2 if rng.random() < 0.5 else [rng.choice(tools) for _ in range(2)]
    parts = [tool.request(rng) for tool in chosen]
    glue = rng.choice((" And: ", " Then: ", "\n", " Also: ", " And also: ", " "))
    ask = parts[0][0] if parts[0][0][-1] in ".?!" else parts[0][0] + "."
    for request, *_ in parts[1:]:
        ask += glue + (request if request[-1] in ".?!" else request + ".")
    return [user(ask), calls(*((t.name, p[1]) for t, p in zip(chosen, parts)))] + [result(as_text(rng, p[2])) for p in parts] + [say("\n".join(p[3] for p in parts))]


def two_cities(rng, tools):
    """`What is the weather in A and B?`: one request, one tool, two calls."""
    for tool in tools:
        if isinstance(tool, Known) and "weather" in tool.name:
            key = next(iter(tool.parameters))
            places = list(dict.fromkeys(w.city(rng) for _ in range(2)))
            outs = [{"temperature": w.number(rng), "condition": rng.choice(CONDITIONS)} for _ in places]
            ask = rng.choice(("What is the weather in {}?", "Compare the weather in {}.", "How is the weather in {}?")).format(" and ".join(places))
            return [user(ask), calls(*((tool.name, {key: p}) for p in places))] + [result(json_text(rng, o)) for o in outs] + [say("\n".join(f"It is {o['temperature']} degrees and {o['condition']} in {p}." for o, p in zip(outs, places)))]
    return parallel(rng, tools)


def ask_result(rng, tools):
    """The tool returns several fields; a later question quotes one of them."""
    tool = rng.choice(tools)
    ask, arguments, _, _ = tool.request(rng)
    keys = rng.sample(w.WORDS, rng.randint(2, 5))
    out = {k: rng.choice((w.word, w.number, w.date, w.name, w.phrase))(rng) for k in keys}
    asked = [rng.choice(keys) for _ in range(rng.randint(1, 2))]
    ask = (ask if ask[-1] in ".?!" else ask + ".") + rng.choice((f" What is the {asked[0]}?", f" Tell me the {asked[0]}.", f" I want to know the {asked[0]}."))
    turns = [user(ask), calls((tool.name, arguments)), result(json_text(rng, out)), say(f"The {asked[0]} is {out[asked[0]]}.")]
    for key in asked[1:]:
        turns += [user(rng.choice((f"And the {key}?", f"What is the {key}?", f"What was the {key}?"))), say(f"The {key} is {out[key]}.")]
    return turns


def exchange(rng, tools):
    return rng.choices((single, parallel, two_cities, ask_result), (5, 7, 1, 1))[0](rng, tools)
