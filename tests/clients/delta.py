"""Asks the tables of a data directory with every reader: `delta.py TABLES`, questions as JSON on stdin.

A question names a table, its column of times, the columns to add up, one to count the distinct values of, one to group
by (or null), and conditions: [column, operator, value, "text" | "date" | "time"], times in microseconds since 1970.

Prints, for each reader, the answers in the order of the questions: rows of the group, the number of rows, of distinct
values, each sum, and the first and the last time in microseconds; in the order of the groups.
"""

import datetime
import json
import pathlib
import subprocess
import sys

import duckdb
import duckdb_extension_delta
import polars
from deltalake import DeltaTable, QueryBuilder


def sql(question, table, micros, literal):
    """The question as SQL, with what is different in each dialect."""
    time, group = question["time"], question["group"]
    asked = [group] if group else ["'all'"]
    asked += ["count(*)", f"count(DISTINCT {question['distinct']})"]
    asked += [f"CAST(sum({column}) AS BIGINT)" for column in question["sums"]]
    asked += [micros(f"min({time})"), micros(f"max({time})")]
    asked = [f"{what} AS c{place}" for place, what in enumerate(asked)]
    where = [f"{column} {operator} {literal(value, kind)}" for column, operator, value, kind in question["where"]]
    return (
        f"SELECT {', '.join(asked)} FROM {table}"
        + (f" WHERE {' AND '.join(where)}" if where else "")
        + (f" GROUP BY {group}" if group else "")
    )


def quoted(text):
    return "'" + text.replace("'", "''") + "'"


class Deltalake:
    """delta-rs, with its own scan."""

    def __init__(self, folder):
        self.folder = folder

    def literal(self, value, kind):
        if kind == "time":
            return f"arrow_cast({value}, 'Timestamp(Microsecond, Some(\"UTC\"))')"
        return ("DATE " if kind == "date" else "") + quoted(value)

    def ask(self, question):
        table = DeltaTable(f"{self.folder}/{question['table']}")
        text = sql(question, "asked", lambda time: f"CAST({time} AS BIGINT)", self.literal)
        rows = QueryBuilder().register("asked", table).execute(text).read_all()
        columns = [rows.column(name).to_pylist() for name in rows.schema.names]
        return list(zip(*columns))


class DuckDb:
    """DuckDB, with its extension from a package: nothing is fetched."""

    def __init__(self, folder):
        self.folder, self.connection = folder, duckdb.connect()
        package = pathlib.Path(duckdb_extension_delta.__file__).parent
        extension = next(package.rglob("*.duckdb_extension"))
        self.connection.execute(f"LOAD {quoted(str(extension))}")

    def literal(self, value, kind):
        if kind == "time":
            return f"make_timestamptz({value})"
        return ("DATE " if kind == "date" else "") + quoted(value)

    def ask(self, question):
        table = f"delta_scan({quoted(self.folder + '/' + question['table'])})"
        return self.connection.execute(sql(question, table, lambda time: f"epoch_us({time})", self.literal)).fetchall()


class Polars:
    """Polars, lazily, so that it skips what it can."""

    def __init__(self, folder):
        self.folder = folder

    def condition(self, column, operator, value, kind):
        if kind == "time":
            value = polars.lit(value).cast(polars.Datetime("us", "UTC"))
        elif kind == "date":
            value = datetime.date.fromisoformat(value)
        column = polars.col(column)
        return {"=": column == value, ">=": column >= value, "<": column < value}[operator]

    def ask(self, question):
        rows = polars.scan_delta(f"{self.folder}/{question['table']}")
        for condition in question["where"]:
            rows = rows.filter(self.condition(*condition))
        time = polars.col(question["time"])
        # A group that is all rows gives a row even when there are none, as in SQL.
        asked = [polars.len().alias("rows"), polars.col(question["distinct"]).drop_nulls().n_unique().alias("distinct")]
        asked += [self.total(column) for column in question["sums"]]
        asked += [time.min().cast(polars.Int64).alias("first"), time.max().cast(polars.Int64).alias("last")]
        if question["group"]:
            return rows.group_by(question["group"]).agg(asked).collect().rows()
        return [("all", *row) for row in rows.select(asked).collect().rows()]

    @staticmethod
    def total(column):
        """A sum of nothing is nothing, as in SQL."""
        column = polars.col(column)
        return polars.when(column.count() > 0).then(column.sum()).otherwise(None).alias(column.meta.output_name())


class Faultline:
    """Our own SQL, as the command line asks the data directory."""

    binary = None
    literal = Deltalake.literal

    def __init__(self, folder):
        self.data = str(pathlib.Path(folder).parent)

    def ask_all(self, questions):
        """All in one run: a start costs more than most questions."""
        micros = lambda time: f"CAST({time} AS BIGINT)"
        text = ";\n".join(sql(one, one["table"], micros, self.literal) for one in questions)
        command = [self.binary, "sql", "--quiet", "--data-dir", self.data, "--format", "json", text]
        printed = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
        answers, decoder = [], json.JSONDecoder()
        while printed := printed.lstrip():
            rows, end = decoder.raw_decode(printed)
            answers.append([tuple(row.values()) for row in rows])
            printed = printed[end:]
        return answers


def main(folder, binary=None):
    questions = json.load(sys.stdin)
    answers = {}
    Faultline.binary = binary
    # What is for Faultline itself, its own SQL does not show.
    for reader in (Deltalake, DuckDb, Polars) + ((Faultline,) if binary else ()):
        opened = reader(folder)
        of_all = opened.ask_all(questions) if reader is Faultline else [opened.ask(one) for one in questions]
        answers[reader.__name__] = [sorted(map(list, rows), key=lambda row: str(row[0] or "")) for rows in of_all]
    print(json.dumps(answers))


main(*sys.argv[1:])
