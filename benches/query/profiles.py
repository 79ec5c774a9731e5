"""Compares two builds of `faultline` on the queries of queries.toml, in turn, over copies of the same data.

profiles.py PROGRAM REFERENCE DATA_DIR [ROUNDS]: prints a Markdown table of median times and the speed of PROGRAM as a
share of that of REFERENCE; fails when the results differ. Run it with the Python environment that `cargo bench --bench
query` makes, and on the data that it makes (target/query-bench).
"""

import math
import os
import pathlib
import shutil
import statistics
import sys
import tempfile
import time
import tomllib

import compare


def main(program, reference, data, rounds=7):
    data = os.path.abspath(data)
    with tempfile.TemporaryDirectory(dir=os.path.dirname(data)) as folder:
        copies = [pathlib.Path(folder, name) for name in ("program", "reference")]
        for copy in copies:
            shutil.copytree(data, copy, copy_function=os.link)
        systems = [compare.Faultline(binary, str(copy)) for binary, copy in zip((program, reference), copies)]
        try:
            measure(systems, rounds)
        finally:
            for system in systems:
                system.end()


def measure(systems, rounds):
    words, total = compare.placeholders(systems[0])
    print(f"{total} events; {rounds} rounds; medians in milliseconds\n")
    print("| query | program | reference | speed |")
    print("|---|---|---|---|")
    speeds = []
    for query in tomllib.loads((compare.HERE / "queries.toml").read_text())["query"]:
        sql = compare.fill(query["sql"], words)
        results = [compare.values(system.ask(sql)) for system in systems]
        compare.check(query["name"], results[0], results[1], query.get("near"))
        times = [[], []]
        for _ in range(rounds):
            for system, taken in zip(systems, times):
                began = time.perf_counter()
                system.ask(sql)
                taken.append((time.perf_counter() - began) * 1000)
        program, reference = (statistics.median(taken) for taken in times)
        speeds.append(reference / program)
        print(f"| {query['name']} | {program:.1f} | {reference:.1f} | {reference / program:.2f} |")
    mean = math.exp(statistics.mean(map(math.log, speeds)))
    print(f"\ngeometric mean of the speed: {mean:.2f}; slowest: {min(speeds):.2f}")


if __name__ == "__main__":
    main(*sys.argv[1:4], *map(int, sys.argv[4:5]))
