"""Comes to the doors that are not plain HTTP with tokens: OTLP over gRPC, PostgreSQL, Flight SQL.

Arguments: the addresses of the three. On stdin: [{"kind": ..., "ingest": TOKEN or null, "query": TOKEN or null,
"user": ...}, ...]. Prints for each what the three said: "ok", or the beginning of the refusal.
"""

import json
import sys

import adbc_driver_flightsql
import adbc_driver_flightsql.dbapi
import grpc
import psycopg

CALL = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"


def otlp(address, token):
    metadata = [("authorization", f"Bearer {token}")] if token else []
    with grpc.insecure_channel(address) as channel:
        export = channel.unary_unary(CALL)
        try:
            export(b"", metadata=metadata, timeout=30)
            return "ok"
        except grpc.RpcError as error:
            return error.code().name


def postgres(address, user, token):
    host, port = address.rsplit(":", 1)
    try:
        with psycopg.connect(host=host, port=port, user=user, password=token or None, dbname="faultline") as connection:
            return "ok" if connection.execute("SELECT 1").fetchone() == (1,) else "wrong"
    except psycopg.OperationalError as error:
        return str(error)


def flight(address, token):
    header = adbc_driver_flightsql.DatabaseOptions.AUTHORIZATION_HEADER.value
    options = {header: f"Bearer {token}"} if token else {}
    try:
        with adbc_driver_flightsql.dbapi.connect(f"grpc://{address}", db_kwargs=options) as connection:
            with connection.cursor() as cursor:
                cursor.execute("SELECT 1")
                return "ok" if cursor.fetchone()[0] == 1 else "wrong"
    except adbc_driver_flightsql.dbapi.Error as error:
        return str(error)


addresses = sys.argv[1:]
answers = []
for visitor in json.load(sys.stdin):
    answers.append({
        "kind": visitor["kind"],
        "otlp": otlp(addresses[0], visitor["ingest"]),
        "postgres": postgres(addresses[1], visitor["user"], visitor["query"]),
        "flight": flight(addresses[2], visitor["query"]),
    })
print(json.dumps(answers))
