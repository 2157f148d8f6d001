"""See `console`, which installs what this needs."""

import itertools
import pathlib
import statistics
import subprocess
import sys
import tempfile
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / name) for name in ("console", "monitoring", "interop")]

from large import filled, pages  # noqa: E402
from load import APP, wrk  # noqa: E402
from visitor import Visitor  # noqa: E402

PEOPLE, PAUSE = 5, 5.0


class People:
    """Five people who open a page every five seconds, each a second after another."""

    def __init__(self, node, credential):
        self.visitors = [Visitor(node.operations) for _ in range(PEOPLE)]
        for visitor in self.visitors:
            visitor.sign_in(credential)
        self.paths, self.times, self.ends = itertools.cycle(pages(self.visitors[0])), [], threading.Event()

    def __enter__(self):
        self.ends.clear()
        self.thread = threading.Thread(target=self.look)
        self.thread.start()

    def __exit__(self, *_):
        self.ends.set()
        self.thread.join()

    def look(self):
        for visitor in itertools.cycle(self.visitors):
            begun = time.monotonic()
            answer = visitor.ask("GET", next(self.paths))
            assert answer.status == 200, answer.status
            self.times.append(time.monotonic() - begun)
            if self.ends.wait(PAUSE / PEOPLE):
                return


def main():
    binary, traffic, seconds, rounds = *sys.argv[1:3], int(sys.argv[3]), int(sys.argv[4])
    with filled(binary, {"PROTECTION_ENROLMENT_BURST": "1000000"}) as (node, scene), tempfile.TemporaryDirectory() as folder:
        node.add({"app_id": APP, "build_channel": "dev", "development_integrity_allowed": True,
                  "ios": {"app_ids": [f"TEAMID1234.{APP}"]}})
        credential = scene.operator.administer("POST", "/credentials", {"role": "service", "apps": [APP], "name": "bench"})["credential"]
        people = People(node, scene.credentials["admin"])

        def rate():
            subprocess.run([traffic, node.origin, APP, credential, folder, str(seconds * 20_000)], check=True, capture_output=True)
            return wrk(node.origin, f"{folder}/verify", seconds, 64)["rate"]

        ratios = []
        for number in range(rounds):
            # The order changes, so that a slow moment meets both.
            found = {}
            for busy in (False, True) if number % 2 else (True, False):
                if busy:
                    with people:
                        found[busy] = rate()
                else:
                    found[busy] = rate()
            ratios.append(found[True] / found[False])
            print(f"quiet {found[False]:7.0f}/s   busy {found[True]:7.0f}/s   {ratios[-1]:.3f}", flush=True)
        print(f"median {statistics.median(ratios):.3f}; a page took {1000 * statistics.median(people.times):.0f} ms beside the load")


if __name__ == "__main__":
    main()
