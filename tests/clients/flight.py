"""Talks to the Flight SQL door: `flight.py FLIGHT_URI WEB_URL`, a list of steps as JSON on stdin.

A step is [name, argument...]; see the functions of Client. Prints, for each step, what it gave, or
{"error": message, "status": name of the status}. Everything is asked over ADBC, but for the steps that begin with
`raw`, which use pyarrow's own Flight client, and `http`, which asks the HTTP door for the same rows as an Arrow stream.
"""

import io
import json
import sys
import threading
import time
import urllib.request
import warnings

import adbc_driver_flightsql.dbapi
import pyarrow
import pyarrow.flight
from google.protobuf.any_pb2 import Any

COMMANDS = "type.googleapis.com/arrow.flight.protocol.sql."


def table(rows):
    """Columns with their types, and rows, both as JSON can say them."""
    return {
        "columns": [[field.name, str(field.type)] for field in rows.schema],
        "rows": [[str(cell) if not isinstance(cell, (int, float, list, str, type(None))) else cell for cell in row]
                 for row in zip(*[column.to_pylist() for column in rows.columns])],
    }


def schema(columns):
    about = {b"ARROW:FLIGHT:SQL:REMARKS": "about", b"ARROW:FLIGHT:SQL:TYPE_NAME": "named"}
    said = lambda field: {about[key]: value.decode() for key, value in (field.metadata or {}).items() if key in about}
    return [{"name": field.name, "type": str(field.type), **said(field)} for field in columns]


class Client:
    def __init__(self, flight, web):
        self.flight, self.web = flight, web
        self.connection = adbc_driver_flightsql.dbapi.connect(flight)
        self.raw = pyarrow.flight.connect(flight)

    def query(self, sql, params=None):
        with self.connection.cursor() as cursor:
            cursor.execute(sql, params)
            return table(cursor.fetch_arrow_table())

    def prepared(self, sql, rows):
        """One prepared statement, run once for each row of parameters."""
        with self.connection.cursor() as cursor:
            parameters = cursor.adbc_prepare(sql)
            answers = []
            for row in rows:
                cursor.execute(sql, row)
                answers.append(table(cursor.fetch_arrow_table())["rows"])
            return {"parameters": schema(parameters), "answers": answers}

    def bind_rows(self, sql, values):
        """Several rows of parameters at once."""
        with self.connection.cursor() as cursor:
            cursor.execute(sql, pyarrow.table({"1": values}))
            return table(cursor.fetch_arrow_table())

    def execute_schema(self, sql):
        with self.connection.cursor() as cursor:
            return schema(cursor.adbc_execute_schema(sql))

    def execute_many(self, sql, rows):
        with self.connection.cursor() as cursor:
            cursor.executemany(sql, rows)

    def ingest(self, name):
        with self.connection.cursor() as cursor:
            return cursor.adbc_ingest(name, pyarrow.table({"code": ["A"]}), mode="append")

    def objects(self, depth, filters):
        return self.connection.adbc_get_objects(depth=depth, **filters).read_all().to_pylist()

    def table_schema(self, name):
        return schema(self.connection.adbc_get_table_schema(name))

    def table_types(self):
        return self.connection.adbc_get_table_types()

    def info(self):
        return self.connection.adbc_get_info()

    def stream(self, sql):
        """Reads batch by batch, and keeps none."""
        with self.connection.cursor() as cursor:
            cursor.execute(sql)
            rows = batches = total = 0
            for batch in cursor.fetch_record_batch():
                batches += 1
                rows += batch.num_rows
                total += pyarrow.compute.sum(batch.column(0)).as_py()
            return {"rows": rows, "batches": batches, "sum": total}

    def abandon(self, sql, times):
        """Reads one batch, and goes away in the middle of the answer."""
        for _ in range(times):
            connection = adbc_driver_flightsql.dbapi.connect(self.flight)
            cursor = connection.cursor()
            cursor.execute(sql)
            reader = cursor.fetch_record_batch()
            assert reader.read_next_batch().num_rows > 0
            reader.close()
            cursor.close()
            connection.close()
        return times

    def cancel(self, sql, times):
        """Cancels a query that has not said anything yet; gives what the client then hears."""
        heard = []
        for _ in range(times):
            with self.connection.cursor() as cursor:
                timer = threading.Timer(0.3, cursor.adbc_cancel)
                timer.start()
                try:
                    cursor.execute(sql)
                    cursor.fetchall()
                    heard.append("an answer")
                except Exception as error:
                    heard.append(getattr(error, "status_code", error).name)
                timer.join()
        return heard

    def timed(self, sql):
        began = time.monotonic()
        rows = self.query(sql)["rows"]
        return {"rows": rows, "seconds": time.monotonic() - began}

    def http(self, sql, params=None):
        body = json.dumps({"query": sql, "params": params or []}).encode()
        headers = {"Content-Type": "application/json", "Accept": "application/vnd.apache.arrow.stream"}
        request = urllib.request.Request(f"{self.web}/api/v1/sql", body, headers)
        with urllib.request.urlopen(request) as answer:
            return table(pyarrow.ipc.open_stream(io.BytesIO(answer.read())).read_all())

    def raw_command(self, name, fields):
        """A command by its name, with its text fields by their numbers: its rows, and whether the schemas agree."""
        value = b"".join(bytes([number << 3 | 2, len(text.encode())]) + text.encode() for number, text in fields)
        command = Any(type_url=COMMANDS + name, value=value).SerializeToString()
        info = self.raw.get_flight_info(pyarrow.flight.FlightDescriptor.for_command(command))
        rows = self.raw.do_get(info.endpoints[0].ticket).read_all()
        return {**table(rows), "announced": info.schema.equals(rows.schema)}

    def raw_ticket(self, text):
        return table(self.raw.do_get(pyarrow.flight.Ticket(text.encode())).read_all())

    def raw_descriptor(self, text):
        self.raw.get_flight_info(pyarrow.flight.FlightDescriptor.for_path(text))

    def raw_handshake(self, user, password):
        name, token = self.raw.authenticate_basic_token(user, password)
        options = pyarrow.flight.FlightCallOptions(headers=[(name, token)])
        return {"token": token.decode(), "flights": len(list(self.raw.list_flights(options=options)))}

    def raw_actions(self):
        return [action.type for action in self.raw.list_actions()]


def main():
    warnings.simplefilter("ignore")
    client = Client(*sys.argv[1:])
    answers = []
    for name, *arguments in json.load(sys.stdin):
        try:
            answers.append(getattr(client, name)(*arguments))
        except Exception as error:
            status = getattr(error, "status_code", None)
            answers.append({"error": str(error), "status": status.name if status else type(error).__name__})
    client.connection.close()
    json.dump(answers, sys.stdout, default=str)


main()
