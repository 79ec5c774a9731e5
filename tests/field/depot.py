"""What the Python set-ups share: the calls of calls.json, and an OpenTelemetry SDK that exports to Faultline.

The calls are data, so that every set-up makes the same failures, in every language. A set-up changes an expectation
only where its SDK changes the message.
"""

import asyncio
import contextlib
import json
import logging
import os
import pathlib
import socket
import sys
import time

CALLS = json.loads(pathlib.Path(__file__).with_name("calls.json").read_text())
# The tool that sleeps does it for so many seconds.
SLEEP = 3


def arguments(call):
    """The arguments of a call: those that it names, or good ones."""
    return call.get("arguments", {"kilos": 3})


def timeout(call):
    """The seconds after which the client gives up: sooner than the tool that sleeps, and never on the others."""
    return 0.5 if call["does"] == "sleep" else 60


async def fit_into_minute(call):
    """Waits for the next minute if the tool that sleeps would end in it: views compare the sides of calls by minute."""
    left = 60 - time.time() % 60
    if call["does"] == "sleep" and left < SLEEP + 2:
        await asyncio.sleep(left)


def text_of(call):
    """The text that the tool of a call puts into its reply."""
    return call["text"] if "text" in call else json.dumps(call["value"])


def failures(service, changes=None):
    """The failures that the calls make, as the service should report them.

    `changes` maps a tool to what its failure has that is different; None takes the failure away.
    """
    changes = changes or {}
    made = []
    for call in CALLS:
        tool = call["tool"]
        if "failure" not in call or changes.get(tool, {}) is None:
            continue
        failure = {"operation": tool, "service": service, "hidden": False}
        made.append(failure | call["failure"] | changes.get(tool, {}))
    return made


def export(service, logs=False):
    """Sends the spans of this process, and if asked its log records, to OTEL_EXPORTER_OTLP_ENDPOINT.

    Returns a function that sends what is left. Spans are sent one by one, so that nothing is lost when a client ends
    the process.
    """
    from opentelemetry import trace
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor

    resource = Resource.create({"service.name": service})
    provider = TracerProvider(resource=resource)
    provider.add_span_processor(SimpleSpanProcessor(OTLPSpanExporter()))
    trace.set_tracer_provider(provider)
    if logs:
        export_logs(resource)
    return provider.force_flush


def export_logs(resource):
    """Sends the log records of the root logger."""
    from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
    from opentelemetry.sdk._logs import LoggerProvider, LoggingHandler
    from opentelemetry.sdk._logs.export import SimpleLogRecordProcessor

    provider = LoggerProvider(resource=resource)
    provider.add_log_record_processor(SimpleLogRecordProcessor(OTLPLogExporter()))
    logging.getLogger().addHandler(LoggingHandler(level=logging.INFO, logger_provider=provider))


def environment():
    """The environment that a server started by a client needs."""
    names = ("PATH", "PYTHONPATH", "PYTHONDONTWRITEBYTECODE", "PYTHONWARNINGS", "OTEL_EXPORTER_OTLP_ENDPOINT")
    return {name: os.environ[name] for name in names if name in os.environ}


@contextlib.asynccontextmanager
async def http_server(script, *arguments):
    """Runs a server script on a free port, given as its last argument, and yields its URL once it listens."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
    process = await asyncio.create_subprocess_exec(sys.executable, script, *arguments, str(port))
    try:
        while process.returncode is None:
            with contextlib.suppress(OSError):
                _, writer = await asyncio.open_connection("127.0.0.1", port)
                writer.close()
                break
            await asyncio.sleep(0.05)
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()


def report(made, **more):
    """Prints what was made, for compare() of field.py."""
    print(json.dumps({"failures": made, "operations": [call["tool"] for call in CALLS]} | more), flush=True)
