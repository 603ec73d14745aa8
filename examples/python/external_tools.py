"""A tool of the request: the server hands its calls over, this program runs them. Needs `pip install openai`.

    npm start
    python3 examples/python/external_tools.py
"""

import json

import openai

from find_server import find_server

base_url, api_key = find_server("npm start")
client = openai.OpenAI(base_url=base_url, api_key=api_key)
tools = [
    {
        "type": "function",
        "function": {
            "name": "get_weather",
            "description": "Get weather for a location",
            "parameters": {
                "type": "object",
                "properties": {"location": {"type": "string", "description": "City name"}},
                "required": ["location"],
            },
        },
    }
]
messages = [{"role": "user", "content": "What is the weather in Tokyo?"}]

# `tools` is given, so the MCP servers' stay out of the prompt and the stream ends with the calls.
response = client.chat.completions.create(model="default", messages=messages, tools=tools)
message = response.choices[0].message
messages.append(message)
for call in message.tool_calls or []:
    print(f"Execute: {call.function.name}({call.function.arguments})")
    result = {"temperature": 19, "condition": "rainy"}
    messages.append({"role": "tool", "tool_call_id": call.id, "content": json.dumps(result)})

# What was generated is still in the KV cache: only the results are computed.
response = client.chat.completions.create(model="default", messages=messages, tools=tools)
print(response.choices[0].message.content)
print(f"cached tokens: {response.usage.prompt_tokens_details.cached_tokens}")
