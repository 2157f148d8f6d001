"""How long each page takes over a million devices, 200,000 audit events and the 90 days of history of scene.py. A page may take 50 ms."""

import os
import pathlib
import statistics
import tempfile
import time

from scene import APP, QUEUE, UNLIMITED, Scene
from service import Node
from visitor import Visitor, pattern, walk

DEVICES, EVENTS, LIMIT, TIMES = 1_000_000, 200_000, 0.05, 15
# Copies of a registered device, registered a second apart. One in a hundred waits for a decision, was rejected or was revoked.
FILL = f"""
    CREATE TEMP TABLE numbers AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {DEVICES}) SELECT i FROM n;
    CREATE TEMP TABLE model AS SELECT * FROM devices WHERE app_id = '{APP}' AND status = 'registered' AND attested_key_id IS NULL LIMIT 1;
    CREATE TEMP TABLE copies AS SELECT i, lower(hex(randomblob(16))) AS h FROM numbers;
    INSERT INTO devices (device_id, app_id, platform, status, key, key_thumbprint, assurance, registered_at, last_seen, highest_scheme,
                         admitted_under_observation)
    SELECT substr(h, 1, 8) || '-' || substr(h, 9, 4) || '-4' || substr(h, 14, 3) || '-8' || substr(h, 18, 3) || '-' || substr(h, 21, 12),
           CASE i % 4 WHEN 0 THEN '{QUEUE}' ELSE app_id END, CASE i % 2 WHEN 0 THEN 'ios' ELSE 'android' END,
           CASE i % 300 WHEN 0 THEN 'pending' WHEN 100 THEN 'rejected' WHEN 200 THEN 'revoked' ELSE status END, key, h, assurance,
           registered_at - i, last_seen - i % 86400, highest_scheme, 0 FROM copies, model;
    INSERT INTO audit SELECT last + i, 'device.registered', at, 'device', '{APP}', device_id, '{{}}', zeroblob(32)
    FROM numbers, (SELECT max(sequence) AS last, max(at) AS at FROM audit), (SELECT device_id FROM model) WHERE i <= {EVENTS};
    ANALYZE;
"""


# A busy console: five people, each of whom opens a page every five seconds.
PAGES_A_SECOND = 5 / 5


def run(binary):
    """Prints the median of each page, and what share of the cores a busy console takes. Returns 0, or how many pages are slow."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        node = Node(binary, folder, UNLIMITED).start()
        try:
            scene = Scene(node)
            scene.fill()
            scene.restart(f"BEGIN; {FILL} COMMIT;")
            visitor = Visitor(node.operations)
            visitor.sign_in(scene.credentials["admin"])
            slow, asked, done = 0, 0, {}
            paths = [path for path, answer in walk(visitor, most=2).items()
                     # Leaves out the check of the log. It reads the whole log, and a person must request it.
                     if "check=" not in path and answer.status == 200 and answer.is_page]
            used = processor_time(node.process.pid)
            for path in paths:
                times = []
                for _ in range(TIMES):
                    begun = time.monotonic()
                    visitor.ask("GET", path)
                    times.append(time.monotonic() - begun)
                asked += TIMES
                median = statistics.median(times)
                if median > done.get(pattern(path), (0,))[0]:
                    done[pattern(path)] = median, path
            used = processor_time(node.process.pid) - used
            for kind, (median, path) in sorted(done.items()):
                slow += median > LIMIT
                print(f"{'SLOW' if median > LIMIT else 'ok  '} {median * 1000:6.1f} ms  {kind}  {path}")
            share = used / asked * PAGES_A_SECOND / os.cpu_count()
            print(f"a page takes {1000 * used / asked:.1f} ms of processor time; five people who each open one every five seconds take "
                  f"{100 * share:.2f} % of {os.cpu_count()} cores")
            return f"{slow} kinds of pages take more than {LIMIT * 1000:.0f} ms" if slow else 0
        finally:
            node.stop()


def processor_time(process):
    """Seconds of processor time of a process."""
    fields = pathlib.Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")
