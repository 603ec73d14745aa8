"""Small builders for messages, shared by all behaviours."""
from render import dumps


def user(text):
    return {"role": "user", "content": text}


def say(text):
    return {"role": "assistant", "content": text}


def calls(*pairs, text=None):
    """An assistant turn that calls tools; each pair is (name, arguments)."""
    return {"role": "assistant", "content": text, "tool_calls": [{"type": "function", "function": {"name": n, "arguments": a}} for n, a in pairs]}


def result(text):
    return {"role": "tool", "content": text}


def function_tool(name, description, parameters):
    return {"type": "function", "function": {"name": name, "description": description, "parameters": parameters}}


def json_text(rng, value):
    """A tool's JSON result: compact as JSON.stringify gives it, or spaced as Python does."""
    import json
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")) if rng.random() < 0.5 else dumps(value)


def listed(items):
    return items[0] if len(items) == 1 else ", ".join(items[:-1]) + " and " + items[-1]


def sorry(doing, error):
    return say(f"Sorry, I could not {doing}: {error}")
