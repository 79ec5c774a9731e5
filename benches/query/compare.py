"""Asks `faultline serve`, DuckDB and chdb the questions of queries.toml over the same files, in turn, and compares.

compare.py FAULTLINE DATA_DIR [ROUNDS]: prints a Markdown table of median times and ratios; fails when answers differ.
Questions that `event_counts` can answer are asked there, too.
"""

import datetime
import glob
import json
import math
import os
import pathlib
import statistics
import subprocess
import sys
import time
import tomllib
import urllib.request

import chdb.session
import duckdb
import pyarrow as pa
import pyarrow.ipc

ROUNDS = 5
THREADS = os.cpu_count()
HERE = pathlib.Path(__file__).parent


class Faultline:
    """Over HTTP, as a client would: the answer comes as an Arrow stream."""

    name = "ours"

    def __init__(self, binary, data):
        listen = [f"--listen-{door}=:0" for door in ("otlp-grpc", "otlp-http", "web", "postgres", "flight")]
        self.server = subprocess.Popen([binary, "serve", "--data-dir", data, *listen], stderr=subprocess.DEVNULL)
        endpoints = pathlib.Path(data, "endpoints.json")
        while not endpoints.exists():
            assert self.server.poll() is None, "the server did not start"
            time.sleep(0.05)
        self.url = f"http://{json.loads(endpoints.read_text())['web']}/api/v1/sql"

    def ask(self, sql):
        request = urllib.request.Request(self.url, json.dumps({"query": sql}).encode())
        request.add_header("Accept", "application/vnd.apache.arrow.stream")
        try:
            with urllib.request.urlopen(request) as answer:
                return pa.ipc.open_stream(answer.read()).read_all()
        except urllib.error.HTTPError as error:
            raise RuntimeError(error.read().decode()) from error

    def end(self):
        self.server.terminate()
        self.server.wait()


class DuckDB:
    name = "DuckDB"

    def __init__(self, files):
        self.connection = duckdb.connect()
        self.connection.execute(f"SET threads = {THREADS}; SET TimeZone = 'UTC'; SET parquet_metadata_cache = true")
        self.connection.execute(f"CREATE VIEW events AS SELECT * FROM read_parquet({files}, hive_partitioning = true)")

    def ask(self, sql):
        return self.connection.execute(sql).to_arrow_table()


class ClickHouse:
    name = "chdb"

    def __init__(self, data):
        self.session = chdb.session.Session()
        path = f"{data}/tables/events/date=*/*.parquet"
        self.session.query(f"SET max_threads = {THREADS}, session_timezone = 'UTC'")
        self.session.query("CREATE DATABASE bench")
        self.session.query(f"CREATE VIEW bench.events AS SELECT * FROM file('{path}', 'Parquet')")
        self.session.query("USE bench")

    def ask(self, sql):
        answer = self.session.query(sql, "ArrowStream")
        return pa.ipc.open_stream(answer.bytes()).read_all()


def values(table):
    """Rows of plain values, whatever types a system likes."""

    def plain(value):
        if isinstance(value, datetime.datetime):
            # A time without a zone is UTC.
            return value.replace(tzinfo=None)
        if isinstance(value, datetime.date):
            return value.isoformat()
        if isinstance(value, bytes):
            return value.decode()
        return value

    return [tuple(plain(value) for value in row.values()) for row in table.to_pylist()]


def check(name, ours, theirs, near):
    assert len(ours) == len(theirs), f"{name}: {len(ours)} rows against {len(theirs)}"
    for mine, other in zip(ours, theirs):
        for one, two in zip(mine, other):
            if isinstance(one, (int, float)) and isinstance(two, (int, float)):
                assert math.isclose(one, two, rel_tol=near or 1e-9), f"{name}: {mine} against {other}"
            else:
                assert one == two, f"{name}: {mine} against {other}"


def main(binary, data, rounds=ROUNDS):
    data = os.path.abspath(data)
    files = sorted(glob.glob(f"{data}/tables/events/date=*/*.parquet"))
    ours = Faultline(binary, data)
    try:
        compare([ours, DuckDB(files), ClickHouse(data)], data, files, rounds)
    finally:
        ours.end()


def placeholders(ours):
    """The values of the placeholders in queries.toml for this data, and the number of events."""
    end, total = ours.ask("SELECT max(time) AS newest, count(*) AS n FROM events").to_pylist()[0].values()
    end = end.replace(tzinfo=None, minute=0, second=0, microsecond=0) + datetime.timedelta(hours=1)
    stamp = lambda **ago: (end - datetime.timedelta(**ago)).strftime("%Y-%m-%d %H:%M:%S")
    trace = ours.ask("SELECT trace_id FROM events WHERE trace_id IS NOT NULL LIMIT 1 OFFSET 777").to_pylist()
    service = ours.ask("SELECT service, count(*) FROM events GROUP BY 1 ORDER BY 2 DESC LIMIT 1").to_pylist()
    words = {
        "{end}": stamp(), "{hour}": stamp(hours=1), "{day}": stamp(days=1), "{week}": stamp(days=7),
        "{trace}": trace[0]["trace_id"], "{service}": service[0]["service"],
    }
    return words, total


def fill(sql, words):
    for word, value in words.items():
        sql = sql.replace(word, value)
    return sql


def compare(systems, data, files, rounds):
    words, total = placeholders(systems[0])
    size = sum(os.path.getsize(file) for file in files)
    print(f"{total} events in {len(files)} files of {size / 1e6:.0f} MB; {rounds} rounds; medians in milliseconds\n")
    counted = sorted(glob.glob(f"{data}/tables/event_counts/date=*/*.parquet"))
    size = sum(os.path.getsize(file) for file in counted)
    rows = systems[0].ask("SELECT count(*) AS n FROM event_counts").to_pylist()[0]["n"]
    print(f"event_counts: {rows} rows in {len(counted)} files of {size / 1e6:.1f} MB\n")
    print("| question | rows | ours | ours, counts | DuckDB | chdb | ours/DuckDB | ours/chdb | counts/DuckDB |")
    print("|---|---|---|---|---|---|---|---|---|")
    ratios = {1: [], 2: []}
    only = os.environ.get("ONLY", "")
    for question in tomllib.loads((HERE / "queries.toml").read_text())["query"]:
        if only not in question["name"]:
            continue
        texts = [question["sql"], question.get("duckdb", question["sql"]), question.get("clickhouse", question["sql"])]
        texts = [fill(text, words) for text in texts]
        answers = [values(system.ask(text)) for system, text in zip(systems, texts)]
        for system, answer in zip(systems[1:], answers[1:]):
            check(f"{question['name']} ({system.name})", answers[0], answer, question.get("near"))
        times = [[], [], []]
        counts = fill(question.get("counts", ""), words)
        from_counts = []
        if counts:
            check(f"{question['name']} (counts)", answers[0], values(systems[0].ask(counts)), None)
        for _ in range(rounds):
            if counts:
                began = time.perf_counter()
                systems[0].ask(counts)
                from_counts.append((time.perf_counter() - began) * 1e3)
            for system, text, taken in zip(systems, texts, times):
                began = time.perf_counter()
                system.ask(text)
                taken.append((time.perf_counter() - began) * 1e3)
        median = [statistics.median(taken) for taken in times]
        for other in ratios:
            ratios[other].append(median[0] / median[other])
        counted = [statistics.median(from_counts)] if from_counts else []
        took = "".join(f"{median:.1f}" for median in counted)
        ratio = "".join(f"{took / median[1]:.2f}" for took in counted)
        print(
            f"| {question['name']} | {len(answers[0])} | {median[0]:.1f} | {took} | {median[1]:.1f} | {median[2]:.1f} "
            f"| {median[0] / median[1]:.2f} | {median[0] / median[2]:.2f} | {ratio} |", flush=True,
        )
    means = [statistics.geometric_mean(ratios[other]) for other in ratios]
    print(f"| **geometric mean** | | | | | | **{means[0]:.2f}** | **{means[1]:.2f}** | |")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], *(int(rounds) for rounds in sys.argv[3:]))
