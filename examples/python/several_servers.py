"""Tools of several MCP servers, named `<server>_<tool>`. Standard library only.

    npm start -- --mcp-config examples/mcp.json
    python3 examples/python/several_servers.py
"""

import json
import sys
import urllib.request

from find_server import find_server

BASE_URL, API_KEY = find_server("npm start -- --mcp-config examples/mcp.json")


def post(path, body):
    request = urllib.request.Request(
        BASE_URL + path,
        data=json.dumps(body).encode(),
        headers={"content-type": "application/json", "authorization": f"Bearer {API_KEY}"},
    )
    with urllib.request.urlopen(request) as response:
        return json.load(response)


# In /v1/responses the calls that the server ran stand in the output, each with its server.
for question in sys.argv[1:] or ["What is the weather in Paris?", "Read the file notes.txt"]:
    print(f"> {question}")
    for item in post("/responses", {"model": "default", "input": question})["output"]:
        if item["type"] == "mcp_call":
            print(f"  {item['server_label']}: {item['name']}({item['arguments']})")
        elif item["type"] == "message":
            print("".join(part["text"] for part in item["content"]))
