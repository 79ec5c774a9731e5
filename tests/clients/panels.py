"""Runs the SQL of panels as Grafana does: `panels.py PORT`, with a list of statements as JSON on stdin.

Prints for each {"columns": [name, ...], "rows": [[...], ...]}, or {"error": ...}. Grafana sends the whole text in a simple query.
"""

import json
import sys
import time

import psycopg
from psycopg import ClientCursor


def ask(connection, sql):
    began = time.monotonic()
    try:
        cursor = ClientCursor(connection).execute(sql)
        rows = cursor.fetchall()
    except psycopg.Error as error:
        return {"error": str(error), "columns": [], "rows": []}
    columns = [[column.name, column.type_code] for column in cursor.description]
    shown = [[None if value is None else str(value) for value in row] for row in rows[:5]]
    return {"columns": columns, "rows": shown, "count": len(rows), "seconds": time.monotonic() - began}


def main():
    where = f"host=127.0.0.1 port={sys.argv[1]} user=grafana dbname=faultline"
    with psycopg.connect(where, autocommit=True) as connection:
        json.dump([ask(connection, sql) for sql in json.load(sys.stdin)], sys.stdout)


main()
