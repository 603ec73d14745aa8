"""ollama for Python: models, a streamed tool round, an answer in a form, an error. Prints what came as JSON."""

import json
import sys

import ollama

host, model, question, tool_text = sys.argv[1:]
tool = {"type": "function", "function": json.loads(tool_text)}
client = ollama.Client(host=host)
options = {"temperature": 0, "num_predict": 200}
asked = []
rounds = []


def weather(arguments):
    asked.append(dict(arguments))
    return json.dumps({"city": arguments["city"], "temperature": 21, "condition": "sunny"})


def chat():
    messages = [{"role": "user", "content": question}]
    while True:
        said = {"role": "assistant", "content": "", "tool_calls": []}
        for part in client.chat(model=model, messages=messages, tools=[tool], stream=True, options=options):
            said["content"] += part.message.content or ""
            said["tool_calls"] += part.message.tool_calls or []
            if part.done:
                rounds.append([part.prompt_eval_count, part.eval_count, part.done_reason])
        if not said["tool_calls"]:
            return said["content"]
        messages.append(said)
        for call in said["tool_calls"]:
            content = weather(call.function.arguments)
            messages.append({"role": "tool", "tool_name": call.function.name, "content": content})


def city():
    form = {
        "type": "object",
        "properties": {"city": {"type": "string", "maxLength": 20}},
        "required": ["city"],
        "additionalProperties": False,
    }
    messages = [{"role": "user", "content": "Name a city."}]
    return json.loads(client.chat(model=model, messages=messages, format=form, options=options).message.content)


def missing():
    try:
        client.show("no-such-model")
    except ollama.ResponseError as error:
        return [error.status_code, error.error]


listed = [entry.model for entry in client.list().models]
print(
    json.dumps(
        {
            "listed": listed,
            "loaded": [entry.model for entry in client.ps().models],
            "capabilities": client.show(listed[0]).capabilities,
            "answer": chat(),
            "asked": asked,
            "rounds": rounds,
            "generated": client.generate(model=model, prompt="Once", raw=True, options={"num_predict": 4}).eval_count,
            "city": city(),
            "missing": missing(),
        }
    )
)
