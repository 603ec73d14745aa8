"""Renders a dialogue as chat_template.jinja does, and marks which characters the model writes.

Contract: `render(messages, tools)` returns a list of (text, written) pieces whose concatenation
is exactly the template's output; `written` is true for the text that the assistant generates
(its turn's content, calls and `<|im_end|>`). Messages are in OpenAI form, except that call
arguments may be objects. check_template.mjs compares it with @huggingface/jinja.
"""
import json

HEAD = (
    "# Tools\n\nYou may call one or more functions to assist with the user query.\n\n"
    "You are provided with function signatures within <tools></tools> XML tags:\n<tools>"
)
TAIL = (
    "\n</tools>\n\nFor each function call, return a json object with function name and arguments "
    "within <tool_call></tool_call> XML tags:\n<tool_call>\n"
    '{"name": <function-name>, "arguments": <args-json-object>}\n</tool_call><|im_end|>\n'
)


def dumps(value):
    return json.dumps(value, ensure_ascii=False)


def call_text(call):
    call = call.get("function", call)
    arguments = call["arguments"]
    if not isinstance(arguments, str):
        arguments = dumps(arguments)
    return f'<tool_call>\n{{"name": "{call["name"]}", "arguments": {arguments}}}\n</tool_call>'


def assistant_text(message):
    parts = [message["content"]] if message.get("content") else []
    parts += [call_text(call) for call in message.get("tool_calls") or []]
    return "\n".join(parts)


def render_prefix(system, tools):
    """The system turn, or nothing; `system` is text or None."""
    if tools:
        start = system + "\n\n" if system is not None else ""
        return "<|im_start|>system\n" + start + HEAD + "".join("\n" + dumps(t) for t in tools) + TAIL
    return f"<|im_start|>system\n{system}<|im_end|>\n" if system is not None else ""


def render_turns(messages):
    """Every message after the system turn, as (text, written) pieces."""
    pieces = []
    for i, message in enumerate(messages):
        role = message["role"]
        if role == "assistant":
            pieces += [("<|im_start|>assistant\n", False), (assistant_text(message) + "<|im_end|>", True), ("\n", False)]
        elif role == "tool":
            text = "" if i and messages[i - 1]["role"] == "tool" else "<|im_start|>user"
            text += "\n<tool_response>\n" + message["content"] + "\n</tool_response>"
            if i + 1 == len(messages) or messages[i + 1]["role"] != "tool":
                text += "<|im_end|>\n"
            pieces.append((text, False))
        else:
            pieces.append((f"<|im_start|>{role}\n{message['content']}<|im_end|>\n", False))
    return pieces


def render(messages, tools=None):
    system = None
    if messages[0]["role"] == "system":
        system, messages = messages[0]["content"], messages[1:]
    prefix = render_prefix(system, tools)
    return ([(prefix, False)] if prefix else []) + render_turns(messages)


def render_prompt(messages, tools=None):
    return "".join(text for text, _ in render(messages, tools)) + "<|im_start|>assistant\n"
