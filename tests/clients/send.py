"""Sends the story with a real exporter: `send.py grpc|http none|gzip ENDPOINT [TIMEOUT]`.

Prints what was told, and what each export came to, as JSON.
"""

import json
import sys

from opentelemetry.exporter.otlp.proto.grpc._log_exporter import OTLPLogExporter as GrpcLogs
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter as GrpcSpans
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter as HttpLogs
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter as HttpSpans
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import BatchLogRecordProcessor
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

import grpc
from story import RESOURCE, FixedIds, Story


def exporters(protocol, compression, endpoint, timeout):
    if protocol == "grpc":
        given = grpc.Compression.Gzip if compression == "gzip" else grpc.Compression.NoCompression
        options = {"endpoint": endpoint, "compression": given, "timeout": timeout, "insecure": True}
        return GrpcSpans(**options), GrpcLogs(**options)
    given = Compression.Gzip if compression == "gzip" else Compression.NoCompression
    options = {"compression": given, "timeout": timeout}
    return (
        HttpSpans(endpoint=f"{endpoint}/v1/traces", **options),
        HttpLogs(endpoint=f"{endpoint}/v1/logs", **options),
    )


class Noted:
    """An exporter that remembers how its exports ended."""

    def __init__(self, exporter):
        self.exporter, self.results = exporter, []

    def export(self, batch):
        result = self.exporter.export(batch)
        self.results.append(result.name)
        return result

    def __getattr__(self, name):
        return getattr(self.exporter, name)


def main(protocol, compression, endpoint, timeout="20"):
    spans, logs = (Noted(one) for one in exporters(protocol, compression, endpoint, float(timeout)))
    traces = TracerProvider(resource=RESOURCE, id_generator=FixedIds(), shutdown_on_exit=False)
    traces.add_span_processor(BatchSpanProcessor(spans))
    records = LoggerProvider(resource=RESOURCE, shutdown_on_exit=False)
    records.add_log_record_processor(BatchLogRecordProcessor(logs))
    story = Story(traces.get_tracer("story", "1"), records.get_logger("story", "1"))
    # One after the other: which of a span and its log comes first must not depend on threads.
    for tell, provider in ((story.spans, traces), (story.logs, records)):
        tell()
        provider.force_flush(int(float(timeout) * 1000))
        provider.shutdown()
    print(json.dumps({"told": story.told, "traces": spans.results, "logs": logs.results}))


main(*sys.argv[1:])
