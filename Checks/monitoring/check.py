#!/usr/bin/env python3
"""Checks docs/monitoring. Each alert fires on samples of a service with the alert's fault, and none fires in a quiet day. Rules and
dashboard use only series and labels that the service has. Each alert has its section in the page Alerts.

    Checks/monitoring/check path/to/synheart-auth                   everything
    Checks/monitoring/check path/to/synheart-auth requests stores   only these faults
    TEST_SAMPLE=2/6 Checks/monitoring/check path/to/synheart-auth sample   a sixth of the faults, and the quiet day

`check` finds promtool.
"""

import concurrent.futures
import json
import os
import pathlib
import re
import sys
import uuid

from prometheus import QUIET, Rules, day
from service import UNLIMITED, development, refusals, running
import faults

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDER = ROOT / "docs/monitoring"
PAGE = ROOT / "Service/Sources/AuthServer/AuthServer.docc/Alerts.md"
PREFIX = "SynheartAuth"
# The parts of each section of the page Alerts, in this order.
PARTS = ["**Users:**", "**First look:**", "**Command:**", "**It ends**"]
# Alerts about latency: they may fire on a busy machine.
OF_TIME = {"LatencyBudgetBurns", "LatencyBudgetBurnsFast", "StoreSlow", "EventLoopsSlow"}


def sections(rules):
    """The problems of the page Alerts: it must have one section for each alert, and the alert's runbook_url must lead there."""
    text = PAGE.read_text()
    found = dict(re.findall(r"^### (\S+)\n(.*?)(?=^#|\Z)", text, re.S | re.M))
    yield from (f"{PAGE.name} has no section {name}" for name in rules.alerts.keys() - found.keys())
    yield from (f"{PAGE.name}: no alert is named {name}" for name in found.keys() - rules.alerts.keys())
    for name, rule in rules.alerts.items():
        places = [found.get(name, "").find(part) for part in PARTS]
        if -1 in places or places != sorted(places):
            yield f"{PAGE.name}: {name} needs {', '.join(PARTS)}"
        path, _, anchor = rule["annotations"]["runbook_url"].partition("/blob/main/")[2].partition("#")
        if ROOT / path != PAGE or anchor != name.lower():
            yield f"{name}: its runbook_url does not lead to its section"
        if rule["labels"]["severity"] not in ("page", "ticket") or not name.startswith(PREFIX):
            yield f"{name}: a severity is page or ticket, and a name begins with {PREFIX}"


def queries(dashboard):
    """The expressions of a dashboard, its variables replaced."""
    found = []

    def walk(value):
        if isinstance(value, dict):
            found.extend(value[name] for name in ("expr", "query") if isinstance(value.get(name), str))
            value = list(value.values())
        if isinstance(value, list):
            for part in value:
                walk(part)
    walk([dashboard["panels"], dashboard["templating"], dashboard["annotations"]])
    return [query.replace("$__rate_interval", "5m").replace("$instance", ".*").replace("$job", "synheart-auth") for query in found]


def fire(rules, promtool_pool, binary, name):
    """Causes the faults. For each, returns the alerts that must or may fire, its length in minutes, those that fired, and the series."""
    results = []
    for must, may, series in getattr(faults, name)(binary):
        minutes = max(map(len, series.values()))
        results.append((must, may, minutes, promtool_pool.submit(rules.fired, series, minutes), series))
    return results


def judge(rules, name, must, may, minutes, fired):
    """What is wrong with the alerts of one fault: an alert did not fire, fired before the fault or without need, or has no label that its
    text uses.
    """
    first = {}
    for labels, count in fired:
        alert = labels["alertname"].removeprefix(PREFIX)
        first[alert] = min(first.get(alert, minutes), minutes - count)
        rule = rules.alerts[labels["alertname"]]
        for used in re.findall(r"\$labels\.([a-z_]+)", json.dumps(rule["annotations"])):
            if used not in labels and alert != "Down":
                yield f"{name}: {alert} names the label {used}, and has {sorted(labels)}"
    yield from (f"{name}: {alert} did not fire" for alert in must - first.keys())
    yield from (f"{name}: {alert} fired, too" for alert in first.keys() - must - may - OF_TIME)
    yield from (f"{name}: {alert} fired before the fault" for alert, minute in first.items() if minute < QUIET)
    delays = ", ".join(f"{alert} after {minute - QUIET} min" for alert, minute in sorted(first.items()) if alert in must and minute < 100)
    print(f"{name}: {delays or ', '.join(sorted(must))}", flush=True)


def quiet(binary):
    """Scrapes of a service with some devices, backends, and sometimes a request of an unknown device or a malformed one."""
    with running(binary, UNLIMITED) as node:
        node.add(development(node))
        backend, devices, scrapes = node.backend(), [], []
        for number in range(24):
            if number % 6 == 0:
                devices.append(node.device())
            if number % 8 == 0:
                node.run("device", "register", *node.phone(f"phone{number}"))
            for device in devices * 6:
                backend.receives(device)
                device.status()
            headers = devices[0].sign("POST", "https://api.example.com/v1/hsi")
            if number % 3 == 0:
                broken = [headers | {"X-Device-ID": str(uuid.uuid4())}, headers, headers, headers | {"X-Synheart-Timestamp": "1000000000"}]
                refusals(1, backend.ask, backend.question(broken[number // 3 % len(broken)], body=b"1" if number % 2 else b""))
            scrapes.append(node.scrape())
        return scrapes


def quiet_problems(rules, binary):
    for attempt in range(3):
        scrapes = quiet(binary)
        # Attested devices would need a process each, so most devices of this check are in development mode. Leave out the series that
        # show this mode, because an alert reports it.
        series = {key: values for key, values in day(scrapes).items() if ("provider", "development") not in key[1]}
        fired = {labels["alertname"].removeprefix(PREFIX) for labels, _ in rules.fired(series, 24 * 60)}
        if not fired or not fired <= OF_TIME or attempt == 2:
            break
    print(f"a quiet day: {sum(map(len, series.values()))} samples", flush=True)
    return [f"a quiet day: {alert} fired" for alert in sorted(fired)]


def main():
    promtool, binary, *names = sys.argv[1:]
    every = {fault.__name__: fault for fault in faults.ALL}
    if names == ["sample"]:
        part, parts = map(int, os.environ.get("TEST_SAMPLE", "0/1").split("/"))
        names = [*list(every)[part::parts], "quiet"] if parts > 1 else []
    if set(names) - every.keys() - {"quiet"}:
        sys.exit(f"faults: {', '.join(every)}, quiet; or sample")
    rules = Rules(promtool, FOLDER / "alerts.yml")
    rules.test(FOLDER / "alerts.test.yml")
    dashboard = json.loads((FOLDER / "dashboard.json").read_text())
    problems = list(sections(rules))
    covered, keys = set(), set()
    with concurrent.futures.ThreadPoolExecutor(2) as promtool_pool, concurrent.futures.ThreadPoolExecutor(2) as pool:
        running_faults = [(name, pool.submit(fire, rules, promtool_pool, binary, name)) for name in every if not names or name in names]
        for name, done in running_faults:
            for must, may, minutes, fired, series in done.result():
                covered |= must
                keys |= series.keys()
                problems += judge(rules, name, must, may, minutes, fired.result())
    if not names or "quiet" in names:
        problems += quiet_problems(rules, binary)
    if not names:
        problems += [f"no fault fires {name}" for name in sorted(rules.alerts.keys() - {PREFIX + alert for alert in covered})]
        problems += rules.problems(keys, rules.expressions + queries(dashboard))
    if problems:
        sys.exit("\n".join(problems))


if __name__ == "__main__":
    main()
