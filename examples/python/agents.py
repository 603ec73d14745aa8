"""A supervisor that hands tasks to sub-agents; an agent is a model's name. Standard library only.

    npm start -- --mcp-config examples/mcp.json --agents examples/agents.json
    python3 examples/python/agents.py
"""

import json
import sys
import urllib.request

from find_server import find_server

BASE_URL, API_KEY = find_server("npm start -- --mcp-config examples/mcp.json --agents examples/agents.json")


def request(path, body=None):
    return urllib.request.Request(
        BASE_URL + path,
        data=None if body is None else json.dumps(body).encode(),
        headers={"content-type": "application/json", "authorization": f"Bearer {API_KEY}"},
    )


with urllib.request.urlopen(request("/models")) as response:
    print("models:", ", ".join(model["id"] for model in json.load(response)["data"]))

question = sys.argv[1] if len(sys.argv) > 1 else "Ask the analyst to find the weather in Paris"
body = {"model": "supervisor", "messages": [{"role": "user", "content": question}], "stream": True}
with urllib.request.urlopen(request("/chat/completions", body)) as stream:
    for line in stream:
        data = line.decode().strip().removeprefix("data: ")
        if not data.startswith("{"):
            continue
        for choice in json.loads(data)["choices"]:
            print(choice["delta"].get("content") or "", end="", flush=True)
print()
