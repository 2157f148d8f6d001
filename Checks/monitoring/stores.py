"""Faults of the stores: a small disk, and PostgreSQL."""

import concurrent.futures
import contextlib
import os
import signal
import subprocess
import tempfile
import threading
import time

from prometheus import Samples, lasting
from service import HERE, UNLIMITED, Refusal, development, refusals, running

TOOL = HERE.parents[1] / "scripts/temporary-postgresql"


def storage(binary):
    """A small disk."""
    mount = 'mount -t tmpfs -o size=64m tmpfs "$0" && exec "$@"'
    with tempfile.TemporaryDirectory() as disk:
        prefix = ["unshare", *([] if os.geteuid() == 0 else ["--map-root-user"]), "--mount", "sh", "-c", mount, disk]
        if subprocess.run([*prefix, "true"], capture_output=True).returncode != 0:
            print("a small disk: this machine mounts none; StorageFull and StorageFillsUp were not fired", flush=True)
            return
        with running(binary, {"DATABASE": f"{disk}/db.sqlite"}, prefix=prefix) as node:
            after = node.scrape()
            before = Samples()
            before.values = after.values | {("synheart_storage_free_bytes", ()): 1e12}
            yield {"StorageFull", "StorageFillsUp"}, set(), lasting(before, after)


@contextlib.contextmanager
def postgresql():
    """The URL of a temporary PostgreSQL, and the numbers of its processes."""
    with tempfile.TemporaryDirectory(dir="/tmp", ignore_cleanup_errors=True) as parent:
        os.chmod(parent, 0o755)
        folder = f"{parent}/postgresql"
        subprocess.run([TOOL, folder], check=True, stdout=subprocess.DEVNULL)

        def processes():
            with open(f"{folder}/data/postmaster.pid") as file:
                main = int(file.readline())
            children = subprocess.run(["ps", "-o", "pid=", "--ppid", str(main)], capture_output=True, text=True)
            return [main, *map(int, children.stdout.split())]
        try:
            yield f"postgresql://auth@/auth?host={folder}", processes
        finally:
            with contextlib.suppress(OSError):
                for process in processes():
                    os.kill(process, signal.SIGCONT)
            subprocess.run([TOOL, "--stop", folder], check=False)


def stores(binary):
    """PostgreSQL is slow, then unreachable."""
    with postgresql() as (url, processes):
        settings = {"DATABASE": None, "STORES_POSTGRESQL": url, "SERVICE_KEY": "A" * 43 + "="} | UNLIMITED
        with running(binary, settings) as node:
            node.add(development(node))
            backend, device = node.backend(), node.device()
            backend.receives(device)
            before = node.scrape()
            # Sets the value, because this check has no second server.
            after = node.scrape()
            after.values["synheart_store_failovers_total", ()] += 1
            yield {"StoreFailover"}, set(), lasting(before, after)

            stop = threading.Event()

            def flood():
                while not stop.is_set():
                    with contextlib.suppress(Refusal, OSError):
                        backend.receives(device)

            def pause(kind):
                for process in processes():
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(process, kind)

            def slow():
                while not stop.is_set():
                    pause(signal.SIGSTOP)
                    time.sleep(0.4)
                    pause(signal.SIGCONT)
                    time.sleep(0.02)

            with concurrent.futures.ThreadPoolExecutor(20) as pool:
                calls = [pool.submit(slow)] + [pool.submit(flood) for _ in range(15)]
                time.sleep(3)
                stop.set()
                for call in calls:
                    call.result()
            after = node.scrape()
            budgets = {f"{kind}BudgetBurns{fast}" for kind in ("Latency", "Error") for fast in ("", "Fast")}
            slow_alerts = {"StoreSlow"} | {name for name in budgets if name.startswith("Latency")}
            yield slow_alerts, {"StoreErrors", "NotReady", "PostgreSQLNotListening"} | budgets, lasting(before, after)

            subprocess.run([TOOL, "--stop", url.partition("host=")[2]], check=True)
            time.sleep(5.5)
            refusals(30, backend.receives, device)
            gone = {"NotReady", "StoreErrors", "PostgreSQLNotListening", "ErrorBudgetBurns", "ErrorBudgetBurnsFast"}
            yield gone, budgets | {"StoreSlow"}, lasting(after, node.scrape())
