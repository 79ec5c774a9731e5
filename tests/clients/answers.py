"""Reads the answers of `faultline sql` with programs that others wrote: `answers.py FILE...`, told apart by their endings.

Prints the rows of each file as lists of texts, with null for what is not there: .csv by Python, .parquet by DuckDB and
.arrow (a stream) by Polars. Of a CSV file an empty cell is an empty text.
"""

import csv
import json
import sys

import duckdb
import polars


def as_text(value):
    if value is None or isinstance(value, str):
        return value
    return json.dumps(value) if isinstance(value, (bool, int, float)) else str(value)


def rows(path):
    if path.endswith(".csv"):
        with open(path, newline="", encoding="utf-8") as file:
            return list(csv.reader(file))[1:]
    if path.endswith(".parquet"):
        return duckdb.execute("SELECT * FROM read_parquet(?)", [path]).fetchall()
    return polars.read_ipc_stream(path).rows()


print(json.dumps([[[as_text(value) for value in row] for row in rows(path)] for path in sys.argv[1:]]))
