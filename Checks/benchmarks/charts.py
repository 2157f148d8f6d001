#!/usr/bin/env python3
"""Draws figures.json: the tables in README.md, and the charts, light and dark in one file.

    Checks/benchmarks/charts.py              writes README.md's tables and charts/*.svg
    Checks/benchmarks/charts.py --check      whether they are those of the figures
    Checks/benchmarks/charts.py --record SECTION   reads lines `row, column, value` with tabs between, of each round; writes all
    Checks/benchmarks/charts.py --self-test  whether the check notices a changed figure, a changed table, and an absent file

The benchmarks write figures.json with --record. Where a figure is a range, a bar ends at its upper end, and its second shade begins
at its lower end. The line at 1 is the peer: the program that a ratio compares with.
"""
import pathlib
import re
import sys
from xml.sax.saxutils import escape

import figures

HERE = pathlib.Path(__file__).resolve().parent
STATUS, VERIFY = "GET /auth/v1/device/status, signed", "POST /auth/v1/verify, signed request in it"
RATES = [("requests/s", "rate"), ("p50", "p50"), ("p99", "p99")]
# For each table of README.md: the section of figures.json, the heading of the first column, and for each further
# column its heading and its figure.
TABLES = {
    "verification": ("what", [("per second", "rate"), ("ratio to R", "ratio"), ("allocations", "allocations")]),
    "http-sqlite": ("what", [*RATES, ("of the bare handler", "ratio")]),
    "http-redis": ("what", [*RATES, ("of the bare handler", "ratio")]),
    "http-redis-apart": ("what", [*RATES, ("of the bare handler", "ratio")]),
    "stores": ("what", [("per second", "rate"), ("peer", "peer"), ("of its peer", "ratio")]),
    "gateways-delay": ("gateway", [("p50 alone", "alone p50"), ("p50 added", "added p50"), ("p99 added", "added p99")]),
    "gateways-rate": ("gateway", [*RATES, ("of nginx alone", "ratio"), ("its own processor time", "gateway us"),
                                  ("of the service", "service us")]),
    "backends": ("caller", [*RATES, ("of wrk", "ratio"), ("its own processor time", "backend us")]),
}
# For each chart: its file, its title, the meaning of the line or of the shades, the figures that a bar shows, their unit, and the bars. A
# bar has a label, and a section and a row of figures.json. An entry with only a label is a heading.
CHARTS = [
    ("verification", "What verification costs, in process", "1 = openssl's P-256 verifications on the same core", ["ratio"], "", [
        ("signed request, one core", "verification", "signed request, scheme 1, one after another"),
        ("its limit: the verification, many keys in turn", "verification", "the same, 64 keys and 8,192 signatures in turn"),
        ("App Attest assertion", "verification", "App Attest assertion"),
        ("Play Integrity token", "verification", "Play Integrity token, decoded and judged: one P-256 verify"),
        ("key attestation, factory chain of 4", "verification", "key attestation, factory chain of 4"),
        ("the same, nothing cached", "verification", "key attestation, factory chain of 4: the first of its kind"),
        ("key attestation, chain of 5", "verification", "key attestation, remotely provisioned chain of 5"),
        ("the same, nothing cached", "verification", "key attestation, remotely provisioned chain of 5: the first of its kind"),
        ("App Attest receipt", "verification", "App Attest receipt"),
        ("App Attest attestation", "verification", "App Attest attestation"),
        ("its limit: one P-384 verification", "verification", "of which: each P-384 verify"),
    ]),
    ("http", "Requests over HTTP", "1 = a bare handler with one verification", ["ratio"], "", [
        ("SQLite",),
        ("GET status, signed", "http-sqlite", STATUS),
        ("POST verify", "http-sqlite", VERIFY),
        ("PostgreSQL and Redis on the node's two cores",),
        ("GET status, signed", "http-redis", STATUS),
        ("POST verify", "http-redis", VERIFY),
        ("PostgreSQL and Redis, the node on a core of its own",),
        ("GET status, signed", "http-redis-apart", STATUS),
        ("POST verify", "http-redis-apart", VERIFY),
    ]),
    ("stores", "The stores against their peers", "1 = the peer", ["ratio"], "", [
        ("look-ups in PostgreSQL; peer: pgbench", "stores", "a look-up in PostgreSQL, 10 connections, 64 tasks"),
        ("Redis, pipelines of 64; peer: redis-benchmark", "stores", "GET in Redis, 2 connections, pipelines of 64"),
        ("Redis, 128 tasks with one GET each", "stores", "the same, 128 tasks that wait for one GET each"),
    ]),
    ("delay", "What asking about each request adds", "p50 / p99, dark / light", ["added p50", "added p99"], " ms", [
        ("nginx", "gateways-delay", "nginx"),
        ("Envoy", "gateways-delay", "Envoy"),
        ("Caddy", "gateways-delay", "Caddy"),
        ("synheart-auth proxy, against the backend alone", "gateways-delay", "`synheart-auth proxy`"),
    ]),
    ("gateways", "Verified requests through a gateway", "1 = nginx alone, which verifies nothing", ["ratio"], "", [
        ("nginx", "gateways-rate", "nginx"),
        ("Envoy", "gateways-rate", "Envoy"),
        ("Caddy", "gateways-rate", "Caddy"),
        ("synheart-auth proxy", "gateways-rate", "`synheart-auth proxy`"),
    ]),
    ("backends", "Calls of /verify by the libraries", "1 = wrk as the caller; the servers' own work is in the bars", ["ratio"], "", [
        ("Go, net/http", "backends", "Go, `net/http`"),
        ("Java, Tomcat", "backends", "Java, Tomcat"),
        ("Node, node:http", "backends", "Node, `node:http`"),
        ("Swift, Hummingbird", "backends", "Swift, Hummingbird"),
        ("Python, ASGI, uvicorn", "backends", "Python, ASGI, uvicorn"),
        ("Python, WSGI, waitress", "backends", "Python, WSGI, waitress"),
    ]),
]
WIDTH, LEFT, RIGHT, TOP, ROW, HEADING = 440, 16, 88, 66, 36, 26
STYLE = """
    .card { fill: #ffffff; stroke: #d0d7de }
    .bar { fill: #1f6feb }
    .range { fill: #a6c8ff }
    .peer { stroke: #bc4c00; stroke-width: 1.5; stroke-dasharray: 4 3 }
    text { font: 13px system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif; fill: #1f2328 }
    .title, .group { font-weight: 600 }
    .small { fill: #bc4c00 }
    .when { font-size: 11px; fill: #57606a }
    @media (prefers-color-scheme: dark) {
      .card { fill: #0d1117; stroke: #30363d }
      .bar { fill: #58a6ff }
      .range { fill: #264d7e }
      .peer { stroke: #f0883e }
      text { fill: #e6edf3 }
      .small { fill: #f0883e }
      .when { fill: #9198a1 }
    }
  """


def ends(figure):
    """The lower and the upper end of a range."""
    return (figure[0], figure[-1]) if isinstance(figure, list) else (figure, figure)


def number(value):
    """The text of a figure. Figures below 1 have two or three digits after the point."""
    value = round(value, 3)
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:.2f}" if abs(value) < 1 and round(value, 2) == value else f"{value:g}"


def conditions(section):
    runs = f"{section['rounds']} rounds" if "rounds" in section else "several runs"
    busy = f", load before {section['load before']:g}" if "load before" in section else ""
    return f"{section['date']}, {section['cores']} cores, {runs}{busy}"


def cell(column, figure):
    """The text of a table's cell: a ratio as its range, any other figure as its median. A figure without a median is a range too."""
    if figure is None or isinstance(figure, str):
        return figure or ""
    unit = " us" if column.endswith("us") else " ms" if re.search("p50|p99", column) else ""
    low, high = ends(figure)
    if low == high:
        return number(low) + unit
    if column != "ratio" and len(figure) == 3:
        return number(figure[1]) + unit
    return f"{number(low)} to {number(high)}{unit}"


def table(every, name):
    first, columns = TABLES[name]
    lines = [f"| {' | '.join([first, *(heading for heading, _ in columns)])} |", "|---" * (len(columns) + 1) + "|"]
    for row, found in every[name]["rows"].items():
        lines.append(f"| {' | '.join([row, *(cell(column, found.get(column)) for _, column in columns)])} |")
    return "\n".join([*lines, "", f"({conditions(every[name])})"])


def page(every, text):
    """README.md with the tables of the figures."""
    for name in TABLES:
        begun, ended = f"<!-- figures: {name} -->\n", "<!-- end -->"
        before, found, rest = text.partition(begun)
        if not found or ended not in rest:
            raise SystemExit(f"README.md has no {begun.strip()} with an end")
        text = before + begun + (table(every, name) if name in every else "(not measured yet)") + "\n" + ended + rest.partition(ended)[2]
    return text


def beside(end, one):
    """The x position of the text beside a bar: right of the bar, and right of the peer's line if the text would cross that line."""
    return (one if one and end < one < end + 80 else end) + 6


def draw(every, title, explained, columns, unit, bars):
    bars = [bar for bar in bars if len(bar) == 1 or bar[2] in every.get(bar[1], {"rows": {}})["rows"]]
    if not any(len(bar) == 3 for bar in bars):
        return None
    values = []
    for bar in bars:
        if len(bar) == 1:
            values.append(None)
            continue
        row = every[bar[1]]["rows"][bar[2]]
        if len(columns) == 2:
            low, high = (row[column][1] for column in columns)
        else:
            low, high = ends(row[columns[0]])
        between = " / " if unit else "–"
        values.append((low, high, (number(low) if low == high else f"{number(low)}{between}{number(high)}") + unit))
    one = 1 if not unit else None
    scale = (WIDTH - LEFT - RIGHT - 4 * len(unit)) / max(1.05 if one else 0, *(value[1] for value in values if value))
    height = TOP + sum(HEADING if value is None else ROW for value in values) + 30
    line = LEFT + scale if one else None
    described = "; ".join(f"{bar[0]}: {value[2]}" if value else bar[0] for bar, value in zip(bars, values))
    runs = [conditions(every[bar[1]]).split(", ") for bar in bars if len(bar) == 3]
    when = ", ".join(part[0] for part in zip(*runs) if len(set(part)) == 1)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" role="img">',
        f"  <title>{escape(title)}. {escape(explained)}</title>", f"  <desc>{escape(described)}</desc>", f"  <style>{STYLE}</style>",
        f'  <rect class="card" x=".5" y=".5" width="{WIDTH - 1}" height="{height - 1}" rx="10"/>',
        f'  <text class="title" x="{LEFT}" y="26">{escape(title)}</text>',
        f'  <text class="small" x="{LEFT}" y="46">{escape(explained)}</text>',
    ]
    y = TOP
    for bar, value in zip(bars, values):
        if value is None:
            parts.append(f'  <text class="group" x="{LEFT}" y="{y + 16}">{escape(bar[0])}</text>')
            y += HEADING
            continue
        low, high, text = value
        parts += [
            f'  <text x="{LEFT}" y="{y + 12}">{escape(bar[0])}</text>',
            f'  <rect class="range" x="{LEFT}" y="{y + 17}" width="{high * scale:.1f}" height="11" rx="2"/>',
            f'  <rect class="bar" x="{LEFT}" y="{y + 17}" width="{low * scale:.1f}" height="11" rx="2"/>',
            *([f'  <path class="peer" d="M{line:.1f} {y + 15}v15"/>'] if line else []),
            f'  <text x="{beside(LEFT + high * scale, line):.1f}" y="{y + 27}">{text}</text>',
        ]
        y += ROW
    parts.append(f'  <text class="when" x="{LEFT}" y="{y + 16}">{escape(when)}</text>')
    return "\n".join([*parts, "</svg>", ""])


def drawn(every, readme):
    """All generated files, by name."""
    made = {f"charts/{name}.svg": draw(every, *rest) for name, *rest in CHARTS}
    return {"README.md": page(every, readme), **{name: text for name, text in made.items() if text}}


def read_file(name):
    return (HERE / name).read_text() if (HERE / name).is_file() else None


def problems(every, read):
    return [f"Checks/benchmarks/{name} is not what the figures say: run Checks/benchmarks/charts.py"
            for name, text in drawn(every, read("README.md") or read_file("README.md")).items() if read(name) != text]


def write():
    for name, text in drawn(figures.read(), read_file("README.md")).items():
        (HERE / name).parent.mkdir(exist_ok=True)
        (HERE / name).write_text(text)


def self_test():
    every = figures.read()
    drawings = drawn(every, read_file("README.md"))
    if problems(every, drawings.get):
        sys.exit("a drawing differs from itself")
    rows = every["verification"]["rows"]
    changed = {**every, "verification": {**every["verification"], "rows": {**rows, "App Attest receipt": {"ratio": 0.777}}}}
    if len(problems(changed, drawings.get)) != 2:
        sys.exit("a changed figure is not noticed in the table and in the chart")
    edited = {**drawings, "README.md": drawings["README.md"].replace("| App Attest receipt", "| Receipt")}
    if len(problems(every, edited.get)) != 1:
        sys.exit("a changed table is not noticed")
    if len(problems(every, {"README.md": drawings["README.md"]}.get)) != len(drawings) - 1:
        sys.exit("an absent file is not noticed")


def main(arguments):
    if arguments == ["--check"]:
        found = problems(figures.read(), read_file)
        if found:
            sys.exit("\n".join(found))
    elif len(arguments) == 2 and arguments[0] == "--record":
        figures.record(arguments[1], *figures.rounds_of(sys.stdin))
        write()
    elif arguments == ["--self-test"]:
        self_test()
    elif not arguments:
        write()
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
