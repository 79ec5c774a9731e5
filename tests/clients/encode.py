"""Prints the story as the SDK would send it: as OTLP/JSON with hex ids, and as protobuf in hex."""

import base64
import json

from google.protobuf.json_format import MessageToDict
from opentelemetry.exporter.otlp.proto.common._log_encoder import encode_logs
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter, SimpleLogRecordProcessor
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from story import RESOURCE, FixedIds, Story

IDS = ("traceId", "spanId", "parentSpanId")


def with_hex_ids(value):
    """Protobuf's own JSON writes bytes in base64; OTLP's JSON writes ids in hex."""
    if isinstance(value, list):
        return [with_hex_ids(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {
        key: base64.b64decode(item).hex() if key in IDS else with_hex_ids(item) for key, item in value.items()
    }


def both(message):
    as_json = with_hex_ids(MessageToDict(message, use_integers_for_enums=True))
    return {"json": as_json, "protobuf": message.SerializeToString().hex()}


spans, logs = InMemorySpanExporter(), InMemoryLogRecordExporter()
traces = TracerProvider(resource=RESOURCE, id_generator=FixedIds())
traces.add_span_processor(SimpleSpanProcessor(spans))
records = LoggerProvider(resource=RESOURCE)
records.add_log_record_processor(SimpleLogRecordProcessor(logs))
story = Story(traces.get_tracer("story", "1"), records.get_logger("story", "1"))
story.spans()
story.logs()
print(
    json.dumps(
        {
            "told": story.told,
            "traces": both(encode_spans(spans.get_finished_spans())),
            "logs": both(encode_logs(logs.get_finished_logs())),
        }
    )
)
