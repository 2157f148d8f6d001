"""The figures of the benchmarks. They are stored only in figures.json: the tables and charts of README.md are generated from it.

A figure is a number, or [lowest, highest], or [lower quartile, median, upper quartile] of the rounds of one run.
"""

import json
import os
import pathlib
import statistics
import time

FILE = pathlib.Path(__file__).resolve().parent / "figures.json"
# The load average of the minute before a run: how many processes ran or waited for a core.
LOAD_BEFORE = os.getloadavg()[0]


def read():
    return json.loads(FILE.read_text())


def rounded(value):
    """The value rounded to three digits. The results of two runs differ in the further digits."""
    short = float(f"{value:.3g}")
    return int(short) if abs(short) >= 100 else short


def middle_half(values):
    """The lower quartile, the median and the upper quartile."""
    values = sorted(values)
    return [values[len(values) // 4], statistics.median(values), values[(3 * len(values)) // 4]]


def rounds_of(lines):
    """Reads lines `row, column, value`. Returns the rows and the number of rounds."""
    rows = {}
    for line in lines:
        row, column, value = line.rstrip("\n").split("\t")
        rows.setdefault(row, {}).setdefault(column, []).append(float(value))
    rounds = max(len(values) for row in rows.values() for values in row.values())
    return {name: {column: middle_half(values) for column, values in row.items()} for name, row in rows.items()}, rounds


def record(section, rows, rounds):
    """Writes the results of a run, and its conditions."""
    every = read()
    every[section] = {
        "date": time.strftime("%Y-%m-%d", time.gmtime()), "cores": len(os.sched_getaffinity(0)), "rounds": rounds,
        "load before": rounded(LOAD_BEFORE),
        "rows": {name: {column: [rounded(value) for value in figure] if isinstance(figure, list) else rounded(figure)
                        for column, figure in row.items()} for name, row in rows.items()},
    }
    FILE.write_text(text(every))


def text(every):
    """The JSON text of figures.json, with a line for each row."""
    lines = []
    for name, section in every.items():
        conditions = "".join(f" {json.dumps(key)}: {json.dumps(value)}," for key, value in section.items() if key != "rows")
        rows = ",\n".join(f"  {json.dumps(row, ensure_ascii=False)}: {json.dumps(columns)}" for row, columns in section["rows"].items())
        lines.append(f"{json.dumps(name)}: {{{conditions} \"rows\": {{\n{rows}}}}}")
    return "{\n" + ",\n".join(lines) + "\n}\n"


def show(rows):
    """The medians, as a table on the terminal."""
    columns = list(next(iter(rows.values())))
    print(" " * 32 + "".join(f"{column:>14}" for column in columns))
    for name, row in rows.items():
        print(f"{name:<32}" + "".join(f"{rounded(row[column][len(row[column]) // 2]):>14}" for column in columns), flush=True)
