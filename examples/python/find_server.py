"""Where the server is, for the examples beside this file. Standard library only."""

import os
import sys
import urllib.error
import urllib.request


def find_server(start):
    """Its address and key, once it has answered. Without a server the program ends and says what starts one.

    start: the command that starts the server which the example needs
    """
    url = os.environ.get("FERMATA_URL", "http://127.0.0.1:8000/v1")
    key = os.environ.get("FERMATA_KEY", "none")
    try:
        headers = {"authorization": f"Bearer {key}"}
        urllib.request.urlopen(urllib.request.Request(f"{url}/models", headers=headers)).close()
    except urllib.error.HTTPError as error:
        problem = f"{error.code} {error.reason}"
    except urllib.error.URLError as error:
        problem = error.reason
    except (OSError, ValueError) as error:
        problem = error
    else:
        return url, key
    sys.exit(
        f"Expected a server at {url} ({problem}). Start it with: {start}\n"
        "FERMATA_URL is the address of another one, FERMATA_KEY its key."
    )
