#!/usr/bin/env python3
"""Runs real MCP servers and clients against a Faultline of their own, and compares what it saw with what was made.

    tests/field/field.py PROGRAM [SETUP/VARIANT ...]     # all set-ups by default; tests/run installs them

A set-up prints the failures that it made as JSON. Each must be in `errors` exactly once, with its operation, category,
message and hiddenness; nothing else may be there; and each call counts once in `error_rates` and in the metrics.
"""

import contextlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request

HERE = pathlib.Path(__file__).resolve().parent
INSTALLED = HERE.parent.parent / "target" / "field"
SETUPS = {
    "python_sdk": ["plain", "middleware"],
    "fastmcp": ["plain", "middleware"],
    "openllmetry": ["linked", "unlinked"],
    "typescript": ["spans", "wire", "tasks"],
}
LISTENERS = ["otlp-grpc", "otlp-http", "web", "postgres", "flight"]
PATIENCE = 120


def command(setup, variant):
    """The command line of a set-up's client, which starts its server."""
    if setup != "typescript":
        python = INSTALLED / setup / "bin" / "python"
        return [python, HERE / setup / "client.py", variant]
    # Node looks for packages beside the script.
    for script in (HERE / setup).glob("*.mjs"):
        # Another variant may be running the same script, so it is replaced as a whole.
        copy = INSTALLED / setup / f".{script.name}.{os.getpid()}"
        shutil.copy(script, copy)
        copy.replace(INSTALLED / setup / script.name)
    return ["node", INSTALLED / setup / "client.mjs", variant]


class Faultline:
    """A running server on free ports."""

    def __init__(self, program, folder):
        self.log = folder / "serve.log"
        listeners = [word for name in LISTENERS for word in (f"--listen-{name}", ":0")]
        self.process = subprocess.Popen(
            [program, "serve", "--data-dir", folder / "data", "--files", f"depot={folder}/*.wire", *listeners],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=self.log.open("w"),
        )
        endpoints = folder / "data" / "endpoints.json"
        wait_for(lambda: endpoints.exists() or self.process.poll() is not None, "a start")
        if self.process.poll() is not None:
            sys.exit(f"faultline serve ended:\n{self.log.read_text()}")
        self.endpoints = json.loads(endpoints.read_text())

    def url(self, listener):
        return f"http://{self.endpoints[listener]}"

    def get(self, path):
        with urllib.request.urlopen(self.url("web") + path, timeout=PATIENCE) as response:
            return response.read().decode()

    def sql(self, query):
        """The rows of a query, as objects."""
        request = urllib.request.Request(
            self.url("web") + "/api/v1/sql",
            json.dumps({"query": query}).encode(),
            {"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=PATIENCE) as response:
            return json.load(response)["rows"]

    def stop(self):
        self.process.terminate()
        self.process.wait(PATIENCE)


def wait_for(condition, what):
    """Waits until a condition holds."""
    began = time.monotonic()
    while not condition():
        if time.monotonic() - began > PATIENCE:
            sys.exit(f"field.py waited {PATIENCE} s for {what}")
        time.sleep(0.02)


def run(program, setup, variant):
    """Runs a variant of a set-up; returns the numbers of failures made and seen right, of rows, and the differences."""
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        folder = pathlib.Path(folder)
        faultline = Faultline(program, folder)
        stack.callback(faultline.stop)
        environment = os.environ | {
            "OTEL_EXPORTER_OTLP_ENDPOINT": faultline.url("otlp_http"),
            "PYTHONPATH": str(HERE),
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTHONWARNINGS": "ignore",
            "FIELD_WIRE": str(folder / "depot.wire"),
            "FIELD_CALLS": str(HERE / "calls.json"),
        }
        client = subprocess.run(
            command(setup, variant), env=environment, timeout=PATIENCE, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )
        if client.returncode != 0:
            sys.exit(f"{setup}/{variant} ended with {client.returncode}:\n{client.stdout}\n{client.stderr}")
        made = json.loads(client.stdout.splitlines()[-1])
        with contextlib.suppress(OSError):
            read = 'faultline_received_bytes_total{source="files"} %d' % os.stat(environment["FIELD_WIRE"]).st_size
            wait_for(lambda: read in faultline.get("/metrics"), "the wire")
        if os.environ.get("FIELD_SHOW"):
            for row in faultline.sql("SELECT * FROM events ORDER BY time"):
                print(json.dumps({name: value for name, value in row.items() if value is not None}))
            for row in faultline.sql("SELECT service, operation, outcome, span_kind, calls FROM traffic"):
                print(json.dumps(row))
            print(client.stderr)
            with contextlib.suppress(OSError):
                print(pathlib.Path(environment["FIELD_WIRE"]).read_text())
        return len(made["failures"]), *compare(faultline, made)


def compare(faultline, made):
    """Returns the numbers of failures that are right and of rows in `errors`, and a line for each difference."""
    seen = faultline.sql("SELECT service, operation, category, hidden, message, dialect, code, attributes FROM errors")
    wrong = list(compare_errors(made["failures"], seen))
    operations = {line.split(": ")[1] for line in wrong}
    right = sum(failure["operation"] not in operations for failure in made["failures"])
    return right, len(seen), [
        *wrong,
        *compare_calls(faultline, made),
        *compare_metric(faultline, made["failures"]),
        *compare_blindness(faultline, made.get("blind", False)),
    ]


def compare_errors(made, seen):
    """Each failure that was made is a row of `errors`, once, and there is no other."""
    for operation in sorted({row["operation"] or "" for row in [*made, *seen]}):
        wanted = [failure for failure in made if failure["operation"] == operation]
        rows = [row for row in seen if (row["operation"] or "") == operation]
        if len(rows) != len(wanted):
            yield f"errors: {operation}: {len(rows)} rows instead of {len(wanted)}: {brief(rows)}"
            continue
        for failure, row in zip(wanted, rows):
            if not agrees(failure, row):
                yield f"errors: {operation}: {brief([row])} instead of {json.dumps(failure)}"


def agrees(failure, row):
    """A row tells of a failure: its message and its evidence, such as a cause in a stack trace, are parts of texts."""
    message, attributes = row["message"] or "", row["attributes"] or ""
    return (
        all(row[name] == failure[name] for name in ("service", "category", "hidden"))
        and failure["message"] in message
        and failure.get("evidence", "") in message + attributes
    )


def brief(rows):
    return json.dumps([{name: value for name, value in row.items() if name != "attributes"} for row in rows])


def compare_calls(faultline, made):
    """Each call counts once in `error_rates`, and so does its failure; each side of it reports it once in `traffic`."""
    rates = faultline.sql(
        "SELECT operation, sum(calls) AS calls, sum(failures) AS failures, sum(hidden_failures) AS hidden"
        " FROM error_rates GROUP BY operation"
    )
    rates = {rate["operation"]: rate for rate in rates}
    failed = {failure["operation"]: failure["hidden"] for failure in made["failures"]}
    for operation in made["operations"]:
        good = {"calls": 1, "failures": int(operation in failed), "hidden": int(failed.get(operation, False))}
        rate = rates.pop(operation, {"calls": 0, "failures": 0, "hidden": 0})
        if any(int(rate[name] or 0) != count for name, count in good.items()):
            yield f"error_rates: {operation}: {json.dumps(rate)} instead of {json.dumps(good)}"
    for operation, rate in rates.items():
        if int(rate["failures"]):
            yield f"error_rates: {operation}: {json.dumps(rate)}, which was not made"
    # A task that goes on is no outcome yet.
    for row in faultline.sql(
        "SELECT service, operation, span_kind, sum(calls) AS calls FROM traffic WHERE outcome <> 'pending'"
        " GROUP BY service, operation, span_kind HAVING sum(calls) <> 0"
    ):
        if row["operation"] in made["operations"] and int(row["calls"]) != 1:
            yield f"traffic: {json.dumps(row)} instead of 1 call"


def compare_metric(faultline, made):
    """The counter of errors by category agrees with the failures."""
    counted = {}
    for line in faultline.get("/metrics").splitlines():
        if line.startswith("faultline_category_events_total{") and 'kind="error"' in line:
            category = line.split('category="')[1].split('"')[0]
            counted[category] = counted.get(category, 0) + float(line.rsplit(" ", 1)[1])
    good = {}
    for failure in made:
        good[failure["category"]] = good.get(failure["category"], 0) + 1
    counted = {category: count for category, count in counted.items() if count}
    if counted != good:
        yield f"faultline_category_events_total: {json.dumps(counted)} instead of {json.dumps(good)}"


def compare_blindness(faultline, blind):
    """The server is named as one whose replies are not captured exactly if they are not."""
    capture = json.loads(faultline.get("/api/v1/status")).get("capture", {})
    named = capture.get("depot", {}).get("finding") == "reply_not_captured"
    if named != blind:
        yield f"/api/v1/status: reply_not_captured is {named} instead of {blind}"
    query = "SELECT * FROM conformance WHERE service = 'depot' AND finding = 'reply_not_captured'"
    named = bool(faultline.sql(query))
    if named != blind:
        yield f"conformance: reply_not_captured is {named} instead of {blind}"


def main():
    program, *wanted = sys.argv[1:]
    # Differences that are known, by the name of their call: `FIELD_KNOWN=scan_yard`. They are printed and do not fail.
    known = [f": {name}: " for name in os.environ.get("FIELD_KNOWN", "").split(",") if name]
    wanted = wanted or [f"{setup}/{variant}" for setup, variants in SETUPS.items() for variant in variants]
    failed = False
    for name in wanted:
        began = time.monotonic()
        made, right, rows, differences = run(program, *name.split("/"))
        took = time.monotonic() - began
        counts = f"{made} failures made, {right} seen right, {rows} rows, {len(differences)} differences"
        print(f"{name}: {counts}, {took:.1f} s")
        for difference in differences:
            print(f"  {difference}")
        failed = failed or any(not any(name in difference for name in known) for difference in differences)
    sys.exit(failed)


if __name__ == "__main__":
    main()
