"""Tools that this program runs itself: weather, a calculator and a search. Standard library only.

    npm start                                        # in one terminal
    python3 examples/python/tool_calling.py          # in another
    python3 examples/python/tool_calling.py "What is the weather in Oslo?"
"""

import ast
import json
import operator
import sys
import urllib.request

from find_server import find_server

BASE_URL, API_KEY = find_server("npm start")
MAX_ROUNDS = 8

WEATHER = {"Tokyo": (19, "rainy"), "Paris": (21, "sunny"), "Oslo": (4, "snowy")}
PAGES = {
    "kv cache": ("What a KV cache is", "https://example.com/kv-cache"),
    "tool calling": ("Tool calling explained", "https://example.com/tool-calling"),
}


def get_weather(location, unit="celsius"):
    degrees, condition = WEATHER.get(location, (15, "cloudy"))
    if unit == "fahrenheit":
        degrees = round(degrees * 9 / 5 + 32)
    return {"temperature": degrees, "condition": condition}


OPERATORS = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.USub: operator.neg,
}


def calculator(expression):
    """The four operations; never `eval` what a model wrote."""

    def value(node):
        if isinstance(node, ast.Constant) and isinstance(node.value, (int, float)):
            return node.value
        if isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:
            return OPERATORS[type(node.op)](value(node.left), value(node.right))
        if isinstance(node, ast.UnaryOp) and type(node.op) in OPERATORS:
            return OPERATORS[type(node.op)](value(node.operand))
        raise ValueError(f"cannot calculate {expression!r}")

    return {"value": value(ast.parse(expression, mode="eval").body)}


def web_search(query, limit=3):
    for words, (title, url) in PAGES.items():
        if words in query.lower():
            return {"title": title, "url": url}
    return {"title": f"Nothing about {query}", "url": "https://example.com"}


def tool(function, description, properties, required):
    parameters = {"type": "object", "properties": properties, "required": required}
    return {
        "type": "function",
        "function": {"name": function.__name__, "description": description, "parameters": parameters},
    }


FUNCTIONS = {function.__name__: function for function in (get_weather, calculator, web_search)}
TOOLS = [
    tool(
        get_weather,
        "Get weather for a location",
        {
            "location": {"type": "string", "description": "City name"},
            "unit": {"type": "string", "enum": ["celsius", "fahrenheit"]},
        },
        ["location"],
    ),
    tool(
        calculator,
        "Evaluate an arithmetic expression.",
        {"expression": {"type": "string", "description": "The expression"}},
        ["expression"],
    ),
    tool(
        web_search,
        "Search the web and return the best results.",
        {
            "query": {"type": "string", "description": "Search terms"},
            "limit": {"type": "integer", "description": "How many results"},
        },
        ["query"],
    ),
]


def complete(messages):
    body = {"model": "default", "messages": messages, "tools": TOOLS}
    request = urllib.request.Request(
        f"{BASE_URL}/chat/completions",
        data=json.dumps(body).encode(),
        headers={"content-type": "application/json", "authorization": f"Bearer {API_KEY}"},
    )
    with urllib.request.urlopen(request) as response:
        return json.load(response)["choices"][0]["message"]


def run(call):
    """A failure goes to the model too: it may do better with the next call."""
    name, arguments = call["function"]["name"], call["function"]["arguments"]
    try:
        result = FUNCTIONS[name](**json.loads(arguments))
    except Exception as error:
        result = {"error": str(error)}
    print(f"  {name}({arguments}) -> {json.dumps(result)}")
    return {"role": "tool", "tool_call_id": call["id"], "content": json.dumps(result)}


def ask(question):
    print(f"> {question}")
    messages = [{"role": "user", "content": question}]
    for _ in range(MAX_ROUNDS):
        message = complete(messages)
        messages.append(message)
        if not message.get("tool_calls"):
            print(message["content"])
            return
        # All calls of the round are answered before the next request.
        messages += [run(call) for call in message["tool_calls"]]
    print("(no answer within the rounds)")


for question in sys.argv[1:] or [
    "What is the weather in Tokyo?",
    "Calculate 12 * 7",
    "Search the web for tool calling",
]:
    ask(question)
