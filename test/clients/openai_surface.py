"""Every method of openai for Python, found by walking the client. Prints what each led to as JSON lines."""

import inspect
import json
import sys

import openai
from openai._resource import SyncAPIResource

url, supported_text = sys.argv[1:]
supported = json.loads(supported_text)
exchanges = []


def record(response):
    response.read()
    exchanges.append(
        {
            "status": response.status_code,
            "type": response.headers.get("content-type", ""),
            "body": response.text,
        }
    )


client = openai.OpenAI(
    base_url=url,
    api_key="none",
    admin_api_key="none",
    webhook_secret="none",
    max_retries=0,
    timeout=10,
    http_client=openai.DefaultHttpxClient(event_hooks={"response": [record]}),
)


def resources(holder, prefix):
    for name in sorted(dir(type(holder))):
        if name.startswith("_") or name.startswith("with_"):
            continue
        value = getattr(holder, name) if not callable(getattr(type(holder), name)) else None
        if isinstance(value, SyncAPIResource):
            yield f"{prefix}{name}", value
            yield from resources(value, f"{prefix}{name}.")


def methods():
    for path, resource in resources(client, ""):
        for name, _ in inspect.getmembers(type(resource), inspect.isfunction):
            if not name.startswith("_"):
                yield f"{path}.{name}", getattr(resource, name)


def required(method):
    """A value for each parameter that has no default."""
    values = {}
    for name, parameter in inspect.signature(method).parameters.items():
        if parameter.default is not inspect.Parameter.empty:
            continue
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        annotation = str(parameter.annotation)
        if name in ("file", "image", "data") or "FileTypes" in annotation:
            file = ("a.txt", b"a")
            values[name] = [file] if "Iterable" in annotation else file
        elif "Iterable" in annotation or "Sequence" in annotation or "List" in annotation:
            values[name] = []
        else:
            values[name] = "nothing"
    return values


# Those of which one overload or another must be met, or whose values are looked at before they are sent.
given = {
    "admin.organization.external_keys.create": {
        key: "nothing" for key in ("external_id", "kms_arn", "name", "role_arn", "type")
    },
    "audio.voices.create": {key: "nothing" for key in ("name", "prompt", "type")},
    "beta.agents.automations.create": {
        key: "nothing" for key in ("expression", "name", "target", "timezone", "type")
    },
    "beta.agents.environments.files.create": {
        key: "nothing" for key in ("environment_id", "file_id", "path", "type")
    },
    "videos.edit": {"prompt": "nothing", "video": b"a"},
    "videos.extend": {"prompt": "nothing", "seconds": "4", "video": b"a"},
}


def finish(result):
    """Streams and pages are read to their end."""
    if hasattr(result, "__enter__") and hasattr(result, "__exit__"):
        with result as stream:
            if hasattr(stream, "until_done"):
                stream.until_done()


for name, method in methods():
    exchanges.clear()
    outcome = "ok"
    try:
        finish(method(**(supported.get(name) or given.get(name) or required(method))))
    except Exception as error:  # noqa: BLE001
        outcome = f"{type(error).__module__}.{type(error).__name__}: {error}"[:300]
    print(json.dumps({"name": name, "outcome": outcome, "exchanges": exchanges}))
