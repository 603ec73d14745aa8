"""openai for Python: a tool round, streamed, over both APIs. Prints what came as JSON."""

import json
import sys

import openai

url, question, tool_text = sys.argv[1:]
tool = json.loads(tool_text)
client = openai.OpenAI(base_url=url, api_key="none", max_retries=0)
asked = []


def weather(arguments):
    asked.append(json.loads(arguments))
    return json.dumps({"city": asked[-1]["city"], "temperature": 21, "condition": "sunny"})


def chat():
    messages = [{"role": "user", "content": question}]
    while True:
        with client.chat.completions.stream(
            model="fermata-small", messages=messages, tools=[{"type": "function", "function": tool}]
        ) as stream:
            message = stream.get_final_completion().choices[0].message
        if not message.tool_calls:
            return message.content
        messages.append(message)
        for call in message.tool_calls:
            content = weather(call.function.arguments)
            messages.append({"role": "tool", "tool_call_id": call.id, "content": content})


def responses():
    items = [{"role": "user", "content": question}]
    while True:
        with client.responses.stream(
            model="fermata-small", input=items, tools=[{"type": "function", "strict": False, **tool}]
        ) as stream:
            response = stream.get_final_response()
        calls = [item for item in response.output if item.type == "function_call"]
        if not calls:
            return response.output_text
        items += response.output
        for call in calls:
            output = weather(call.arguments)
            items.append({"type": "function_call_output", "call_id": call.call_id, "output": output})


print(json.dumps({"version": openai.__version__, "answers": [chat(), responses()], "asked": asked}))
