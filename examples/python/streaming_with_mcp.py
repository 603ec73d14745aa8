"""One streamed answer; the server runs its MCP tools while it is written. Needs `pip install openai`.

    npm start -- --mcp-command npx --mcp-args=-y,@modelcontextprotocol/server-filesystem,/tmp/demo/docs
    python3 examples/python/streaming_with_mcp.py
"""

import sys

import openai

from find_server import find_server

base_url, api_key = find_server(
    "npm start -- --mcp-command npx --mcp-args=-y,@modelcontextprotocol/server-filesystem,/tmp/demo/docs"
)
client = openai.OpenAI(base_url=base_url, api_key=api_key)
question = "List the files in /tmp/demo/docs, then read notes.txt and tell me what it says."

# No `tools`: the MCP servers' are in the prompt, and their calls are run by the server.
stream = client.chat.completions.create(
    model="default",
    messages=[{"role": "user", "content": sys.argv[1] if len(sys.argv) > 1 else question}],
    stream=True,
)
for chunk in stream:
    if chunk.choices and chunk.choices[0].delta.content:
        print(chunk.choices[0].delta.content, end="", flush=True)
print()
