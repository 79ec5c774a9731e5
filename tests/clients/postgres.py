"""Asks the PostgreSQL door with psycopg: `postgres.py PORT TOPIC`, with what the topic needs as JSON on stdin.

Prints what was answered as JSON. Errors are [SQLSTATE, message, hint, position].
"""

import datetime
import decimal
import json
import socket
import struct
import sys
import threading
import time

import psycopg
from psycopg import ClientCursor
from psycopg.rows import dict_row

ENDLESS = "SELECT count(*) FROM generate_series(1, 1000000) a, generate_series(1, 1000000) b"


def connect(port, **options):
    return psycopg.connect(f"host=127.0.0.1 port={port} user=ann dbname=faultline", autocommit=True, **options)


def said(error):
    position = error.diag.statement_position
    return [error.sqlstate, error.diag.message_primary, error.diag.message_hint, position and int(position)]


def refused(ask):
    """The error of something that must not work."""
    try:
        ask()
    except psycopg.Error as error:
        return said(error)
    return None


def plain(value):
    """A value, and its type, as JSON has it."""
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, (datetime.datetime, datetime.date)):
        return value.isoformat()
    if isinstance(value, (datetime.timedelta, decimal.Decimal, bytes)):
        return str(value)
    return value


def queries(port):
    """Each statement of a list, by one cursor after the other: text and binary results, the client's own quoting (which
    is the simple protocol), and a prepared statement."""
    answers = []
    with connect(port) as connection:
        for sql, values in json.load(sys.stdin):
            ask = lambda **how: connection.execute(sql, values, **how).fetchall()
            simple = lambda: ClientCursor(connection).execute(sql, values).fetchall()
            answers.append(plain([ask(), ask(binary=True), simple(), ask(prepare=True), ask(prepare=True)]))
    return answers


def typed(port):
    """Values of every type, there and back."""
    instant = datetime.datetime(2026, 11, 16, 1, 2, 3, 456789, tzinfo=datetime.timezone.utc)
    sent = [
        "text with 'quotes', \\ and ü",
        "x" * 100_000,
        True,
        7,
        1 << 40,
        1.5,
        instant,
        instant.replace(tzinfo=None),
        instant.date(),
        datetime.timedelta(days=2, seconds=3),
        b"\x00\xff",
        [1, 2, 300_000],
        None,
    ]
    with connect(port) as connection:
        back = [
            [connection.execute("SELECT %s", [value], binary=binary).fetchone()[0] for value in sent]
            for binary in (False, True)
        ]
        names = connection.execute("SELECT 1, count(*), 'x' AS \"X\", 1 FROM codes").description
        row = connection.cursor(row_factory=dict_row).execute("SELECT count(*), max(code) FROM codes").fetchone()
        return {
            "same": [[there == here for there, here in zip(sent, answers)] for answers in back],
            "names": [column.name for column in names],
            "keys": list(row),
        }


def cursors(port):
    """Cursors of the server, with values, in text and binary, and what becomes of them."""
    with connect(port) as connection:
        total = connection.execute("SELECT count(*) FROM events").fetchone()[0]
        fetched = []
        for binary in (False, True):
            with connection.transaction():
                with connection.cursor(name="few", binary=binary) as cursor:
                    cursor.itersize = 7
                    cursor.execute("SELECT time, event_id FROM events WHERE time > %s", ["2000-01-01"])
                    fetched.append([len(cursor.fetchmany(10)), sum(1 for _ in cursor)])
        with connection.transaction():
            connection.execute("DECLARE kept CURSOR WITH HOLD FOR SELECT event_id FROM events")
        held = len(connection.execute("FETCH 3 FROM kept").fetchall())
        connection.execute("CLOSE kept")
        connection.execute("BEGIN")
        connection.execute("DECLARE lost CURSOR FOR SELECT 1")
        connection.execute("COMMIT")
        streamed = sum(1 for _ in connection.cursor().stream("SELECT * FROM events"))
        return {
            "total": total,
            "fetched": fetched,
            "held": held,
            "streamed": streamed,
            "closed": refused(lambda: connection.execute("FETCH 1 FROM kept")),
            "lost": refused(lambda: connection.execute("FETCH 1 FROM lost")),
            "scroll": refused(lambda: connection.execute("DECLARE back SCROLL CURSOR FOR SELECT 1")),
        }


def transactions(port):
    """What a transaction does though there is nothing to write."""
    with connect(port) as connection:
        seen = []
        status = lambda: seen.append(connection.info.transaction_status.name)
        connection.execute("BEGIN READ ONLY")
        status()
        failed = refused(lambda: connection.execute("SELECT nothing"))
        status()
        aborted = refused(lambda: connection.execute("SELECT 1"))
        ended = connection.execute("COMMIT").statusmessage
        status()
        with connection.transaction():
            inner = []
            try:
                with connection.transaction():
                    connection.execute("SELECT nothing")
            except psycopg.Error as error:
                inner.append(error.sqlstate)
            inner.append(connection.execute("SELECT 1").fetchone()[0])
            connection.execute("SET LOCAL statement_timeout = '1234ms'")
            inner.append(connection.execute("SHOW statement_timeout").fetchone()[0])
        after = connection.execute("SHOW statement_timeout").fetchone()[0]
        with connection.pipeline():
            first, second = connection.execute("SELECT 1"), connection.execute("SELECT 2")
            pipelined = [first.fetchone()[0], second.fetchone()[0]]
        return {
            "seen": seen,
            "failed": failed,
            "aborted": aborted,
            "ended": ended,
            "inner": inner,
            "after": after,
            "pipelined": pipelined,
        }


def stopped(port):
    """Queries that would not end: by the limit of time that the client sets, and by the client's own request."""
    with connect(port) as connection:
        connection.execute("SET statement_timeout = 300")
        began = time.monotonic()
        late = refused(lambda: connection.execute(ENDLESS))
        late_after = time.monotonic() - began
        connection.execute("RESET statement_timeout")
        threading.Timer(0.3, connection.cancel).start()
        began = time.monotonic()
        cancelled = refused(lambda: connection.execute(ENDLESS))
        cancelled_after = time.monotonic() - began
        # Nothing runs: there is nothing to stop.
        connection.cancel()
        after = connection.execute("SELECT 1").fetchone()[0]
    with connect(port, options="-c statement_timeout=250") as connection:
        by_option = refused(lambda: connection.execute(ENDLESS))
    return {
        "late": [late, late_after],
        "cancelled": [cancelled, cancelled_after],
        "after": after,
        "by_option": by_option,
    }


def dropped(port):
    """Begins queries on as many connections as may run at once, and goes away without a word."""
    connections = [connect(port) for _ in range(8)]
    for connection in connections:
        connection.pgconn.send_query(ENDLESS.encode())
    time.sleep(0.5)
    for connection in connections:
        # As a client that is killed: no goodbye.
        taken = socket.socket(fileno=connection.fileno())
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        taken.close()
    began = time.monotonic()
    with connect(port) as connection:
        answer = connection.execute("SELECT count(*) FROM codes").fetchone()[0]
    return {"answer": answer, "after": time.monotonic() - began}


def crowd(port):
    """One connection too many, and room again when one goes."""
    connections = [connect(port) for _ in range(100)]
    refusal = None
    try:
        connect(port)
    except psycopg.OperationalError as error:
        refusal = str(error)
    connections.pop().close()
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        try:
            connections.append(connect(port))
            break
        except psycopg.OperationalError:
            time.sleep(0.05)
    answers = [connection.execute("SELECT 1").fetchone()[0] for connection in connections]
    for connection in connections:
        connection.close()
    return {"refusal": refusal, "answers": sum(answers)}


def denied(port):
    """Each statement of a list, over both protocols; the connection must be usable after every one."""
    answers = []
    with connect(port) as connection:
        for sql in json.load(sys.stdin):
            simple = refused(lambda: ClientCursor(connection).execute(sql).fetchall())
            extended = refused(lambda: connection.execute(sql, binary=True).fetchall())
            usable = connection.execute("SELECT 1").fetchone()[0]
            answers.append([simple, extended, usable])
    return answers


def errors(port):
    """The errors of a list of statements, over both protocols."""
    answers = []
    with connect(port) as connection:
        for sql in json.load(sys.stdin):
            simple = refused(lambda: ClientCursor(connection).execute(sql).fetchall())
            extended = refused(lambda: connection.execute(sql, binary=True).fetchall())
            answers.append([simple, extended])
    return answers


def hoarding(port):
    """Prepares long statements until that is refused; the connection must be usable after it."""
    prepared, refusal = 0, None
    with connect(port) as connection:
        connection.prepared_max = 10_000
        filler = "x" * 200_000
        while refusal is None and prepared < 3_200:
            sql = f"SELECT length('{prepared}{filler}')"
            refusal = refused(lambda: connection.execute(sql, prepare=True).fetchall())
            prepared += refusal is None
        usable = connection.execute("SELECT 1").fetchone()[0]
    return {"prepared": prepared, "refused": refusal and refusal[0], "usable": usable}


def main(port, topic):
    print(json.dumps(globals()[topic](port)))


main(*sys.argv[1:])
