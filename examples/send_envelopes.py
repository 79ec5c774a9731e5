"""Sends response envelopes to a running Faultline server. Needs Python 3.9 or later, and no package.

Run it with:

    faultline serve                          # in another terminal
    python3 examples/send_envelopes.py

FAULTLINE_URL is the address of the OTLP/HTTP listener (by default http://127.0.0.1:4318), FAULTLINE_TOKEN a token of the
scope `ingest` if the server needs one. The exit code is 0 if the server stored every envelope.
"""

import datetime
import json
import os
import sys
import time
import urllib.error
import urllib.request
import uuid

URL = os.environ.get("FAULTLINE_URL", "http://127.0.0.1:4318")
TOKEN = os.environ.get("FAULTLINE_TOKEN")
ATTEMPTS = 5


def envelope(operation, response):
    """Returns one log line: the response of a server, with its context."""
    return {
        "time": datetime.datetime.now(datetime.timezone.utc).isoformat(),
        "service": "example-python",
        "operation": operation,
        "response": response,
    }


def example_lines():
    """Returns a success, an open failure, and a failure that is hidden in a successful reply."""
    hidden = {"success": False, "error": {"code": "PERMISSION_DENIED", "message": "Not allowed to delete 'notes'"}}
    return [
        envelope("list_notes", {"success": True, "data": []}),
        envelope("read_note", {"success": False, "error": {"code": "NOT_FOUND_RESOURCE", "message": "No note '42'"}}),
        envelope(
            "delete_note",
            {
                "jsonrpc": "2.0",
                "id": 3,
                "result": {"content": [{"type": "text", "text": json.dumps(hidden)}], "isError": False},
            },
        ),
    ]


def send(lines):
    """Sends the lines as one request and returns the server's response; retries while the server asks for it.

    The idempotency key is the same for every attempt, so the lines are stored once even if a response was lost.
    """
    headers = {"Content-Type": "application/x-ndjson", "Idempotency-Key": str(uuid.uuid4())}
    if TOKEN:
        headers["Authorization"] = f"Bearer {TOKEN}"
    body = "".join(json.dumps(line) + "\n" for line in lines).encode()
    for attempt in range(1, ATTEMPTS + 1):
        request = urllib.request.Request(f"{URL}/v1/envelopes", data=body, headers=headers, method="POST")
        try:
            with urllib.request.urlopen(request, timeout=30) as response:
                return json.load(response)
        except urllib.error.HTTPError as error:
            if error.code not in (429, 503) or attempt == ATTEMPTS:
                raise SystemExit(f"the server rejected the request: {error.code} {error.read().decode()}") from error
            time.sleep(float(error.headers.get("Retry-After", "1")))
        except OSError as error:
            if attempt == ATTEMPTS:
                raise SystemExit(f"cannot reach {URL}: {error}") from error
            time.sleep(attempt)
    raise AssertionError("the last attempt returns or exits")


def main():
    """Sends the example and prints the response."""
    lines = example_lines()
    result = send(lines)
    print(json.dumps(result, indent=2))
    for rejected in result["rejected"]:
        print(f"line {rejected['line']} was rejected: {rejected['reason']}", file=sys.stderr)
    return 0 if result["accepted"] == len(lines) else 1


if __name__ == "__main__":
    sys.exit(main())
