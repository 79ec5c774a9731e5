"""Sends the span of a failed tool call to a running Faultline server, with the OpenTelemetry SDK.

Run it with:

    faultline serve                          # in another terminal
    pip install opentelemetry-sdk opentelemetry-exporter-otlp-proto-http
    python3 examples/send_spans.py

OTEL_EXPORTER_OTLP_ENDPOINT is the address of the OTLP/HTTP listener (by default http://localhost:4318). If the server needs
a token of the scope `ingest`, set OTEL_EXPORTER_OTLP_HEADERS="Authorization=Bearer%20TOKEN".
"""

import json

from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.trace import SpanKind


class CheckedExporter(SpanExporter):
    """Passes spans to another exporter, and remembers whether the server acknowledged all of them."""

    def __init__(self, exporter):
        self.exporter = exporter
        self.acknowledged = True

    def export(self, spans):
        result = self.exporter.export(spans)
        self.acknowledged &= result is SpanExportResult.SUCCESS
        return result

    def shutdown(self):
        self.exporter.shutdown()


def call_tool():
    """Returns the response of a tool that ran into a quota, inside a reply that MCP calls a success."""
    envelope = {
        "success": False,
        "error": {"code": "RATE_LIMIT_QUOTA_EXHAUSTED", "message": "The quota of this hour is used up"},
    }
    return {"content": [{"type": "text", "text": json.dumps(envelope)}], "isError": False}


def main():
    """Records one tool call as a span, and returns 0 if the server acknowledged it."""
    exporter = CheckedExporter(OTLPSpanExporter())
    provider = TracerProvider(resource=Resource.create({"service.name": "example-otel"}))
    # A real server should use BatchSpanProcessor, which sends spans in the background.
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    tracer = provider.get_tracer("example")
    with tracer.start_as_current_span("tools/call create_issue", kind=SpanKind.SERVER) as span:
        span.set_attribute("mcp.method.name", "tools/call")
        span.set_attribute("gen_ai.tool.name", "create_issue")
        result = call_tool()
        # The span status stays unset, as with many SDKs. With the reply on the span, Faultline finds the failure in it.
        span.set_attribute("gen_ai.tool.call.result", json.dumps(result))
        trace_id = trace.format_trace_id(span.get_span_context().trace_id)
    provider.shutdown()
    if not exporter.acknowledged:
        print("the server did not acknowledge the span")
        return 1
    print(f"sent; faultline sql \"SELECT canonical, hidden FROM events WHERE trace_id = '{trace_id}'\" shows the failure")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
