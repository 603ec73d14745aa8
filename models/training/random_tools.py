"""Values by kind, JSON schemas, and tools that are made up on the spot."""
import words as w
from dialogue import function_tool, listed

SCHEMA = {"int": "integer", "digit": "integer", "float": "number", "bool": "boolean"}
MADE_UP_KINDS = ("word", "phrase", "name", "city", "path", "date", "clock", "email", "order", "int", "float", "bool", "strings", "text", "enum")
ACTIONS = (
    "get set find create remove update check open close start stop send list count show move copy merge split lock unlock "
    "measure print rank sort pack ship weigh scan mark charge assign compare plan book order rename archive"
).split()


def value(rng, kind):
    if isinstance(kind, list):
        return rng.choice(kind)
    return {
        "word": w.word, "phrase": w.phrase, "name": w.name, "city": w.city, "path": w.path, "date": w.date, "clock": w.clock,
        "sentence": w.sentence, "int": w.number, "float": w.decimal, "code": lambda r: w.code(r, 4, 8),
        "digit": lambda r: r.randint(0, 12), "bool": lambda r: r.random() < 0.5,
        "text": lambda r: r.choice((w.phrase, w.phrase, w.phrase, w.sentence, w.sentence, w.sentence, w.awkward))(r),
        "email": lambda r: f"{w.word(r)}{r.choice(('', '.' + w.word(r)))}@{w.word(r)}.{r.choice(('com', 'org', 'net', 'io', 'de'))}",
        "url": lambda r: f"https://{w.word(r)}.{r.choice(('com', 'org', 'io'))}/{w.identifier(r)}",
        "symbol": lambda r: "".join(r.choice("ABCDEFGHIJKLMNOPQRSTUVWXYZ") for _ in range(r.randint(2, 4))),
        "order": lambda r: f"{r.choice(('A', 'B', 'X', 'ORD', 'id', 'T'))}{r.choice(('', '-'))}{r.randint(10, 99999)}",
        "expression": lambda r: f"{r.randint(1, 999)} {r.choice('+-*/')} {r.randint(1, 99)}" + (f" {r.choice('+-*')} {r.randint(1, 99)}" if r.random() < 0.3 else ""),
        "command": lambda r: r.choice((f"ls -la {w.directory(r)}", f"cat {w.path(r)}", f"grep -r {w.word(r)} {w.directory(r)}", f"echo {w.phrase(r, 1, 3)}", f'git commit -m "{w.phrase(r, 1, 4)}"', f"npm run {w.word(r)}")),
        "sql": lambda r: f"SELECT {w.word(r)} FROM {w.word(r)} WHERE {w.word(r)} = {r.choice((str(w.number(r)), repr(w.word(r))))}",
        "strings": lambda r: [w.word(r) for _ in range(r.randint(1, 4))],
    }[kind](rng)


def said(v):
    """How a value stands in the user's sentence."""
    if isinstance(v, bool):
        return "true" if v else "false"
    return listed(v) if isinstance(v, list) else str(v)


def schema(kind, description=None):
    if isinstance(kind, list):
        out = {"type": "string", "enum": kind}
    elif kind == "strings":
        out = {"type": "array", "items": {"type": "string"}}
    else:
        out = {"type": SCHEMA.get(kind, "string")}
    return {**out, "description": description} if description else out


def object_schema(rng, properties, required):
    out = {"type": "object", "properties": properties, "required": required}
    if rng.random() < 0.15:
        out["additionalProperties"] = False
    return {"$schema": "http://json-schema.org/draft-07/schema#", **out} if rng.random() < 0.1 else out


def camel(parts):
    return parts[0] + "".join(p.capitalize() for p in parts[1:])


class MadeUp:
    """A tool with a random name and schema, and requests that its schema explains."""

    def __init__(self, rng):
        self.action, self.thing = rng.choice(ACTIONS) if rng.random() < 0.8 else w.pseudoword(rng), w.word(rng)
        parts = [self.action, self.thing] + ([w.word(rng)] if rng.random() < 0.2 else [])
        self.name = rng.choice(("_".join, "_".join, camel, "-".join))(parts)
        self.topic = f"{self.action} {self.thing}"
        self.parameters = {}
        for _ in range(rng.choice((0, 1, 1, 2, 2, 3, 4))):
            kind = rng.choice(MADE_UP_KINDS)
            if kind == "enum":
                kind = list(dict.fromkeys(w.word(rng) for _ in range(3)))
            parts = [w.word(rng) for _ in range(rng.choice((1, 1, 1, 2)))]
            self.parameters[rng.choice(("_".join, camel))(parts)] = (kind, " ".join(parts))
        self.required = [p for p in self.parameters if rng.random() < 0.75]
        self.description = rng.choice((f"{self.action.capitalize()} the {self.thing}.", f"{self.action.capitalize()} a {self.thing} {w.phrase(rng, 1, 4)}.", f"Use this to {self.action} the {self.thing}."))
        properties = {p: schema(kind, rng.choice((None, f"The {text}", f"{w.phrase(rng, 1, 4)}"))) for p, (kind, text) in self.parameters.items()}
        self.tool = function_tool(self.name, self.description, object_schema(rng, properties, self.required))

    def request(self, rng):
        """(request text, arguments, result, answer)."""
        arguments, parts = {}, []
        by_name = rng.random() < 0.5
        for p, (kind, text) in self.parameters.items():
            if p in self.required or rng.random() < 0.5:
                arguments[p] = value(rng, kind)
                parts.append(f"{p if by_name or rng.random() < 0.3 else text} {said(arguments[p])}")
        if by_name:
            joined = (" with " + listed(parts)) if parts else ""
            ask = rng.choice((f"Use {self.name}{joined}", f"Call {self.name}{joined}", f"Please use the tool {self.name}{joined}", f"Run {self.name}{joined}"))
        else:
            joined = (rng.choice((" with ", ", ", ": ", " using ")) + listed(parts)) if parts else ""
            ask = rng.choice((f"{self.action.capitalize()} the {self.thing}{joined}", f"Please {self.action} the {self.thing}{joined}", f"Can you {self.action} the {self.thing}{joined}", f"I want to {self.action} the {self.thing}{joined}"))
        key, v = w.word(rng), rng.choice((w.number, w.word, w.date, w.name))(rng)
        return ask, arguments, {key: v}, f"The {key} is {v}."
