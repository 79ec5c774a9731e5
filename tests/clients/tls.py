"""Comes to the doors over TLS: OTLP over gRPC and HTTP with the SDK, PostgreSQL with psycopg, Flight SQL with ADBC.

On stdin: the addresses of the four, "ca", and "certificate" and "key", which may be null. Prints what each came to: "ok", or
the beginning of what went wrong. "postgres_direct" shakes hands without asking, as clients of version 17 may.
"""

import json
import os
import socket
import ssl
import sys

import adbc_driver_flightsql
import adbc_driver_flightsql.dbapi
import grpc
import psycopg
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter as GrpcSpans
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter as HttpSpans
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.trace import SpanKind


class Noted:
    """An exporter that remembers how its exports ended."""

    def __init__(self, exporter):
        self.exporter, self.results = exporter, []

    def export(self, batch):
        try:
            self.results.append(self.exporter.export(batch).name)
        except Exception as error:
            self.results.append(str(error))

    def __getattr__(self, name):
        return getattr(self.exporter, name)


def send(exporter, service):
    noted = Noted(exporter)
    provider = TracerProvider(resource=Resource({"service.name": service}), shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(noted))
    attributes = {"mcp.method.name": "tools/call", "rpc.response.status_code": "-32602"}
    provider.get_tracer("tls").start_span("tools/call pay", kind=SpanKind.SERVER, attributes=attributes).end()
    provider.shutdown()
    return "ok" if noted.results == ["SUCCESS"] else str(noted.results)


def read(path):
    with open(path, "rb") as file:
        return file.read()


def otlp_grpc(told):
    own = (read(told["key"]), read(told["certificate"])) if told["key"] else (None, None)
    credentials = grpc.ssl_channel_credentials(read(told["ca"]), *own)
    return send(GrpcSpans(endpoint=told["otlp_grpc"], credentials=credentials, timeout=3), "tls-grpc")


def otlp_http(told):
    exporter = HttpSpans(
        endpoint=f"https://{told['otlp_http']}/v1/traces",
        certificate_file=told["ca"],
        client_certificate_file=told["certificate"],
        client_key_file=told["key"],
        timeout=3,
    )
    return send(exporter, "tls-http")


def postgres(told):
    host, port = told["postgres"].rsplit(":", 1)
    options = {"sslmode": "verify-full", "sslrootcert": told["ca"]}
    if told["key"]:
        options |= {"sslcert": told["certificate"], "sslkey": told["key"]}
    with psycopg.connect(host=host, port=port, user="x", dbname="faultline", **options) as connection:
        return "ok" if connection.execute("SELECT 1").fetchone() == (1,) else "wrong"


def postgres_direct(told):
    host, port = told["postgres"].rsplit(":", 1)
    context = ssl.create_default_context(cafile=told["ca"])
    context.set_alpn_protocols(["postgresql"])
    if told["key"]:
        context.load_cert_chain(told["certificate"], told["key"])
    startup = b"\0\x03\0\0user\0x\0database\0faultline\0\0"
    with socket.create_connection((host, int(port)), timeout=20) as plain:
        with context.wrap_socket(plain, server_hostname=host) as stream:
            stream.sendall((len(startup) + 4).to_bytes(4, "big") + startup)
            first = stream.recv(1)
            return "ok" if first == b"R" and stream.selected_alpn_protocol() == "postgresql" else repr(first)


def flight(told):
    names = adbc_driver_flightsql.DatabaseOptions
    options = {names.TLS_ROOT_CERTS.value: read(told["ca"]).decode()}
    if told["key"]:
        options[names.MTLS_CERT_CHAIN.value] = read(told["certificate"]).decode()
        options[names.MTLS_PRIVATE_KEY.value] = read(told["key"]).decode()
    with adbc_driver_flightsql.dbapi.connect(f"grpc+tls://{told['flight']}", db_kwargs=options) as connection:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
            return "ok" if cursor.fetchone()[0] == 1 else "wrong"


def tried(door, told):
    try:
        return door(told)
    except Exception as error:
        return f"{type(error).__name__}: {error}"[:300]


# They would win over what the exporter is told.
for name in ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"):
    os.environ.pop(name, None)
told = json.load(sys.stdin)
doors = (otlp_grpc, otlp_http, postgres, postgres_direct, flight)
print(json.dumps({door.__name__: tried(door, told) for door in doors}))
