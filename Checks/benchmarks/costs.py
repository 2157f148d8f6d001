"""Measures what share of the service's processor time its logs, metrics, traces and the like take. Run it by `costs`, which explains it."""

import collections
import re
import subprocess
import sys
import time

from load import HERE, Processes, Service, ready, wrk

# Matches the mangled name of a function of the service: its module and its type, each with its length in front. The
# modules of JSON and of bytes do not match, because their time belongs to their callers.
OURS = re.compile(r"^\$s(?:\d+\w*?Stores|10AuthServer|11AuthService|20AttestationProviders|12Verification|\d+synheart\w*?)(\d+[A-Z]\w*)")
# For each part, a pattern of the mangled names of its types.
PARTS = [(name, re.compile(pattern)) for name, pattern in [
    ("logs", r"10RequestLogV|14JSONLogHandlerV|9LogWriterC|7LogTextO|12AuditHeadLog"),
    ("metrics", r"13ServerMetricsV|15MetricsRegistryC|13VerdictCountsC|14EventLoopDelay|14ProcessMetrics|13StoreObserver"),
    ("history", r"14VerdictHistoryC|13VerdictBuffer|14CountedVerdict|\d+\w*?HistoryStore"),
    ("traces", r"13RequestTracer|13TraceExporter|9TraceSpan|11TracedCalls|8OTLPBody"),
    ("webhooks", r"\d+\w*?Webhook"),
    ("audit", r"\d+\w*?Audit(?:Store|Trail|Chain|Link|Event)"),
]]


def part(stack):
    """The part that a stack belongs to: the part of the innermost function of the service. A stack begins with the innermost function."""
    for function in stack:
        if own := OURS.match(function):
            return next((name for name, pattern in PARTS if pattern.match(own[1])), "the rest")
    return "the rest"


def stacks(file):
    """The functions of each sample of perf's file, the innermost first."""
    script = subprocess.Popen(["perf", "script", "-i", file, "--no-demangle", "-F", "ip,sym"], stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, text=True)
    stack = []
    for line in script.stdout:
        words = line.split(None, 1)
        if words:
            stack.append(words[1].strip() if len(words) > 1 else "")
        elif stack:
            yield stack
            stack = []
    if stack:
        yield stack
    script.wait()


def shares(service, processes, name, load):
    """Runs the load under perf. Returns the load's result, and the number of samples of each part."""
    file = processes.folder / f"{name}.perf"
    perf = subprocess.Popen(["perf", "record", "-q", "-F", "999", "-g", "-o", file, "-p", str(service.process.pid)],
                            stderr=subprocess.DEVNULL)
    time.sleep(0.5)
    requests = load()
    perf.terminate()
    perf.wait()
    counts = collections.Counter(map(part, stacks(file)))
    return requests, counts


def loads(service, seconds):
    """The name of each load, and a function that runs it and returns its result as text."""
    count = int(seconds * 25_000)

    def send(path, files):
        done = wrk(service.url, files.replace("status", path), int(seconds), 64)
        return f"{done['rate']:.0f}/s, {done['refused']:.0f} refused"

    def register():
        began = time.monotonic()
        rounds = 8
        for _ in range(rounds):
            service.sign(2)
        return f"{rounds * 64 / (time.monotonic() - began):.0f}/s"

    signed = service.sign(count)
    yield "GET status", lambda: send("status", signed)
    yield "POST /verify", lambda: send("verify", signed)
    yield "POST /verify, replayed", lambda: send("verify", signed)
    yield "register", register


def main():
    binary, traffic, seconds = sys.argv[1], sys.argv[2], float(sys.argv[3])
    with Processes() as processes:
        # The service traces one request in a hundred, and a webhook gets all events. The receiver accepts everything.
        port = processes.folder / "port.out"
        port.touch()
        receiver = processes.start("receiver", [sys.executable, HERE / "collector.py", port])
        address = f"http://127.0.0.1:{ready(receiver, port, r'([0-9]+)')}"
        service = Service(processes, binary, traffic, SYNHEART_AUTH_TRACING_OTLP=address, SYNHEART_AUTH_TRACING_SAMPLE="0.01")
        service.administer("webhooks", "add", f"{address}/events")
        print(f"{'':24} {'samples':>8}" + "".join(f" {name:>9}" for name, _ in PARTS) + f" {'together':>9}", flush=True)
        for name, load in loads(service, seconds):
            result, counts = shares(service, processes, re.sub("[^a-z]", "", name), load)
            every = sum(counts.values())
            assert every > 100, "perf noted nothing: does the kernel allow it?"
            found = [counts[part] / every for part, _ in PARTS]
            print(f"{name:24} {every:8}" + "".join(f" {100 * share:8.1f}%" for share in [*found, sum(found)]) + f"   {result}", flush=True)


if __name__ == "__main__":
    main()
