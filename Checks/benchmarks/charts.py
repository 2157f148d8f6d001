#!/usr/bin/env python3
"""Draws the ratios of README.md's tables as charts, light and dark in one file.

    Checks/benchmarks/charts.py              writes charts/*.svg
    Checks/benchmarks/charts.py --check      whether the files are those of the tables
    Checks/benchmarks/charts.py --self-test  whether the check notices a changed figure, and a row that is gone

A bar ends at the highest ratio that the table names. Its second shade begins at the lowest. The line at 1 is the peer.
"""
import pathlib
import re
import sys
from xml.sax.saxutils import escape

HERE = pathlib.Path(__file__).resolve().parent
# File, title, what 1 is, and the bars: label, the beginning of the row, and which of the rows that begin so. None is a heading.
CHARTS = [
    ("verification", "What verification costs, in process", "1 = openssl's P-256 verifications on the same core", [
        ("signed request, one core", "signed request, scheme 1", 0),
        ("its limit: the verification, many keys in turn", "the same, 64 keys and 8,192 signatures", 0),
        ("App Attest assertion", "App Attest assertion", 0),
        ("Play Integrity token", "Play Integrity token", 0),
        ("key attestation, factory chain of 4", "key attestation, factory chain", 0),
        ("the same, nothing cached", "the same, nothing cached", 0),
        ("key attestation, chain of 5", "key attestation, remotely provisioned", 0),
        ("the same, nothing cached", "the same, nothing cached", 1),
        ("App Attest receipt", "App Attest receipt", 0),
        ("App Attest attestation", "App Attest attestation", 0),
        ("its limit: one P-384 verification", "one P-384 verification", 0),
    ]),
    ("http", "Requests over HTTP", "1 = a bare handler with one verification", [
        ("SQLite", None, 0),
        ("GET status, signed", "`GET /auth/v1/device/status`, signed", 0),
        ("POST verify", "`POST /auth/v1/verify`", 0),
        ("PostgreSQL and Redis on the node's two cores", None, 0),
        ("GET status, signed", "`GET /auth/v1/device/status`, signed", 1),
        ("POST verify", "`POST /auth/v1/verify`", 1),
        ("PostgreSQL and Redis, the node on a core of its own", None, 0),
        ("GET status, signed", "`GET /auth/v1/device/status`, signed", 2),
        ("POST verify", "`POST /auth/v1/verify`", 2),
    ]),
    ("stores", "The stores against their peers", "1 = the peer", [
        ("look-ups in PostgreSQL; peer: pgbench", "a look-up through the pool", 0),
        ("Redis, pipelines of 64; peer: redis-benchmark", "GET through the client of Redis", 0),
        ("Redis, 128 tasks with one GET each; same peer", "the same, 128 tasks", 0),
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
    @media (prefers-color-scheme: dark) {
      .card { fill: #0d1117; stroke: #30363d }
      .bar { fill: #58a6ff }
      .range { fill: #264d7e }
      .peer { stroke: #f0883e }
      text { fill: #e6edf3 }
      .small { fill: #f0883e }
    }
  """


def rows(page):
    """The cells of each row of each table."""
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in page.splitlines() if line.startswith("|")]


def ratio(page, beginning, index):
    """The lowest and the highest ratio of a row, from its last cell that has one; the head of its table says which cells may."""
    found = [cells for cells in rows(page) if cells[0].startswith(beginning)]
    if index >= len(found):
        raise SystemExit(f"README.md: there is no row {index + 1} that begins with “{beginning}”")
    for cell in reversed(found[index][1:]):
        if numbers := re.search(r"(?<![\d.])(\d\.\d+)(?: to (\d\.\d+))?(?! *(?:ms|us|s)\b)", cell):
            low, high = numbers.group(1), numbers.group(2) or numbers.group(1)
            return float(low), float(high), low if low == high else f"{low}–{high}"
    raise SystemExit(f"README.md: the row “{found[index][0]}” has no ratio")


def beside(end, one):
    """Where the figure of a bar begins: behind the bar, and behind the line of the peer if it would cross that."""
    return (one if end < one < end + 80 else end) + 6


def draw(page, title, peer, bars):
    values = [None if beginning is None else ratio(page, beginning, index) for _, beginning, index in bars]
    scale = (WIDTH - LEFT - RIGHT) / max(1.05, *(value[1] for value in values if value))
    height = TOP + sum(HEADING if value is None else ROW for value in values) + 10
    one = LEFT + scale
    described = "; ".join(f"{label}: {value[2]}" if value else label for (label, _, _), value in zip(bars, values))
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" role="img">',
        f"  <title>{escape(title)}. {escape(peer)}</title>", f"  <desc>{escape(described)}</desc>", f"  <style>{STYLE}</style>",
        f'  <rect class="card" x=".5" y=".5" width="{WIDTH - 1}" height="{height - 1}" rx="10"/>',
        f'  <text class="title" x="{LEFT}" y="26">{escape(title)}</text>', f'  <text class="small" x="{LEFT}" y="46">{escape(peer)}</text>',
    ]
    y = TOP
    for (label, _, _), value in zip(bars, values):
        if value is None:
            parts.append(f'  <text class="group" x="{LEFT}" y="{y + 16}">{escape(label)}</text>')
            y += HEADING
            continue
        low, high, text = value
        parts += [
            f'  <text x="{LEFT}" y="{y + 12}">{escape(label)}</text>',
            f'  <rect class="range" x="{LEFT}" y="{y + 17}" width="{high * scale:.1f}" height="11" rx="2"/>',
            f'  <rect class="bar" x="{LEFT}" y="{y + 17}" width="{low * scale:.1f}" height="11" rx="2"/>',
            f'  <path class="peer" d="M{one:.1f} {y + 15}v15"/>',
            f'  <text x="{beside(LEFT + high * scale, one):.1f}" y="{y + 27}">{text}</text>',
        ]
        y += ROW
    return "\n".join([*parts, "</svg>", ""])


def drawn(page):
    return {f"charts/{name}.svg": draw(page, title, peer, bars) for name, title, peer, bars in CHARTS}


def problems(page, read):
    return [f"Checks/benchmarks/{name} is not what the tables say: run Checks/benchmarks/charts.py"
            for name, text in drawn(page).items() if read(name) != text]


def read_file(name):
    return (HERE / name).read_text() if (HERE / name).is_file() else None


def self_test(page):
    drawings = drawn(page)
    figure = rows(page)[[cells[0].startswith("App Attest receipt") for cells in rows(page)].index(True)][2]
    if problems(page, drawings.get):
        sys.exit("a drawing differs from itself")
    if len(problems(page.replace(figure, "0.777"), drawings.get)) != 1:
        sys.exit("a changed figure is not noticed")
    if len(problems(page, {}.get)) != len(CHARTS):
        sys.exit("an absent file is not noticed")
    try:
        drawn(page.replace("| App Attest receipt", "| Receipt"))
    except SystemExit:
        return
    sys.exit("a row that is gone is not noticed")


def main(arguments):
    page = (HERE / "README.md").read_text()
    if arguments == ["--check"]:
        found = problems(page, read_file)
        if found:
            sys.exit("\n".join(found))
    elif arguments == ["--self-test"]:
        self_test(page)
    elif not arguments:
        for name, text in drawn(page).items():
            (HERE / name).parent.mkdir(exist_ok=True)
            (HERE / name).write_text(text)
    else:
        sys.exit(__doc__)


main(sys.argv[1:])
