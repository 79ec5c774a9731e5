"""A fixed story of one tool server, told with the OpenTelemetry SDK: the same ids and times in every run.

What each span and record must become is written down in `whole_program/otlp/expected.rs`, by its name here.
"""

import json
from itertools import count

from opentelemetry._logs import LogRecord, SeverityNumber
from opentelemetry.context import Context
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace.id_generator import IdGenerator
from opentelemetry.trace import SpanKind, Status, StatusCode, set_span_in_context

RESOURCE = Resource(
    {
        "service.name": "weather",
        "service.version": "1.4.2",
        "deployment.environment.name": "staging",
        "host.name": "node-7",
    }
)
# 2026-11-01T08:00:00Z
BEGAN = 1_793_520_000_000_000_000
SECOND = 1_000_000_000
MILLISECOND = 1_000_000

QUOTA = {
    "success": False,
    "error": {
        "code": "RATE_LIMIT_QUOTA_PAUSE",
        "message": "Quota pause threshold reached",
        "details": {"metric": "requests_per_hour", "current": 4850, "pause_threshold": 4800},
    },
}
MISSING = {
    "success": False,
    "error": {"code": "NOT_FOUND_RESOURCE", "message": "Resource 'station' not found: '17'"},
}
DENIED = {
    "success": False,
    "operation": "delete_station",
    "error": {"code": "PERMISSION_DENIED", "message": "Not yours"},
}


class FixedIds(IdGenerator):
    """Counts, behind digits that show their case."""

    def __init__(self):
        self.traces, self.spans = count(1), count(1)

    def generate_trace_id(self):
        return 0xABCDEF << 104 | next(self.traces)

    def generate_span_id(self):
        return 0xFEDCBA << 40 | next(self.spans)


class Story:
    """Tells the story to a tracer and a logger, and remembers what it told."""

    def __init__(self, tracer, logger):
        self.tracer, self.logger = tracer, logger
        self.told = {}
        self.contexts = {}
        self.next = count()

    def spans(self):
        ok, unset, error = Status(StatusCode.OK), None, lambda text=None: Status(StatusCode.ERROR, text)
        self.span(
            "hidden",
            "tools/call pay",
            SpanKind.SERVER,
            ok,
            {
                "mcp.method.name": "tools/call",
                "gen_ai.tool.name": "pay",
                "gen_ai.tool.call.result": json.dumps(QUOTA),
                "jsonrpc.request.id": "req-7",
                "mcp.session.id": "session-3",
                "app.region": "eu-west",
                "app.attempts": 3,
                "app.ratio": 0.25,
                "app.cached": False,
                "app.tags": ["a", "b"],
            },
        )
        self.span(
            "unset",
            "tools/call get-weather",
            SpanKind.SERVER,
            unset,
            {
                "mcp.method.name": "tools/call",
                "gen_ai.tool.name": "get-weather",
                "rpc.system": "jsonrpc",
                "rpc.response.status_code": "-32602",
            },
        )
        self.span(
            "exception",
            "tools/call forecast",
            SpanKind.SERVER,
            error("the forecast failed"),
            {"mcp.method.name": "tools/call", "gen_ai.tool.name": "forecast"},
            exception=TimeoutError("upstream timed out after 30 s"),
        )
        for name in ("healthy", "healthy too"):
            attributes = {"mcp.method.name": "tools/call", "gen_ai.tool.name": "get-weather"}
            self.span(name, "tools/call get-weather", SpanKind.SERVER, unset, attributes)
        self.span("inside", "read cache", SpanKind.INTERNAL, unset, {"cache.hit": True})
        call = {
            "mcp.method.name": "resources/read",
            "error.type": "-32601",
            "rpc.response.status_code": "-32601",
        }
        self.span("client", "resources/read", SpanKind.CLIENT, error("Method not found"), call)
        self.span("server", "resources/read", SpanKind.SERVER, error("Method not found"), call, parent="client")
        self.span(
            "limited",
            "GET /forecast",
            SpanKind.CLIENT,
            error(),
            {"http.request.method": "GET", "http.response.status_code": 429, "error.type": "429"},
        )
        self.span(
            "tool error",
            "execute_tool convert",
            SpanKind.INTERNAL,
            error("unit 'furlong' is not known"),
            {"gen_ai.tool.name": "convert", "error.type": "tool_error"},
        )

    def span(self, key, name, kind, status, attributes, exception=None, parent=None):
        number = next(self.next)
        start = BEGAN + number * SECOND
        context = self.contexts[parent] if parent else Context()
        span = self.tracer.start_span(name, context, kind, attributes, start_time=start)
        if exception:
            span.record_exception(exception, timestamp=start + MILLISECOND)
        if status:
            span.set_status(status)
        end = start + (number + 1) * 1_500_000 + 999
        span.end(end)
        self.contexts[key] = set_span_in_context(span, Context())
        self.note(key, span.get_span_context(), start, end)

    def logs(self):
        error, info = SeverityNumber.ERROR, SeverityNumber.INFO
        self.log("text", info, json.dumps(MISSING), {"gen_ai.tool.name": "find-station"})
        self.log("dict", SeverityNumber.WARN, DENIED, {"enduser.id": "u-17"}, within="inside")
        self.log("raised", error, "cannot convert", {"code.line": 12}, exception=ValueError("Invalid unit: 'zz'"))
        self.log("repeat", error, "forecast failed", {}, exception=TimeoutError("late"), within="exception")
        self.log("chat", info, "cache is warm", {})

    def log(self, key, severity, body, attributes, exception=None, within=None):
        time = BEGAN + next(self.next) * SECOND
        context = self.contexts[within] if within else Context()
        record = LogRecord(
            timestamp=time,
            observed_timestamp=time + 5,
            context=context,
            severity_number=severity,
            severity_text=severity.name,
            body=body,
            attributes=attributes,
            exception=exception,
        )
        self.logger.emit(record)
        self.note(key, record, time, time)

    def note(self, key, ids, start, end):
        has_ids = ids.trace_id != 0
        self.told[key] = {
            "trace_id": f"{ids.trace_id:032x}" if has_ids else None,
            "span_id": f"{ids.span_id:016x}" if has_ids else None,
            "start_ns": start,
            "end_ns": end,
        }
