"""Scrapes a real service, writes the samples as the series of promtool's unit tests, and lets promtool evaluate our alert rules."""

import json
import pathlib
import re
import subprocess
import tempfile

import yaml

SELECTOR = re.compile(r"\b((?:synheart|process)_[a-z0-9_]+)(?:\{([^}]*)\})?")
MATCHER = re.compile(r'([a-z_]+)(=~|!~|!=|=)"((?:[^"\\]|\\.)*)"')
# Prometheus adds these labels to what it scrapes.
ADDED = {"job": "synheart-auth", "instance": "one:9464"}


class Samples:
    """One scrape: the value of each series, by its name and labels. `up` is Prometheus' own."""

    def __init__(self, text=None, at=0.0):
        self.at = at
        self.values = {("up", ()): 0.0 if text is None else 1.0}
        for line in (text or "").splitlines():
            if not line.startswith("#"):
                series, value = line.rsplit(" ", 1)
                name, _, labels = series.rstrip("}").partition("{")
                self.values[name, tuple((label, found) for label, _, found in MATCHER.findall(labels))] = float(value)

    def value(self, key):
        """The value of a series. A time is relative to the scrape, because the clock of promtool's tests begins at 0."""
        value = self.values[key]
        return value - self.at if key[0].endswith("_timestamp_seconds") else value


class Rules:
    """A file of rules, and promtool."""

    def __init__(self, promtool, file):
        self.promtool, self.file = promtool, file
        rules = [rule for group in yaml.safe_load(file.read_text())["groups"] for rule in group["rules"]]
        self.alerts = {rule["alert"]: rule for rule in rules if "alert" in rule}
        self.recorded = [rule["record"] for rule in rules if "record" in rule]
        self.expressions = [rule["expr"] for rule in rules]
        self.names = {name for expression in self.expressions for name, _ in SELECTOR.findall(expression)} | {"up"}

    def test(self, file):
        subprocess.run([self.promtool, "check", "rules", self.file], check=True, stdout=subprocess.DEVNULL)
        subprocess.run([self.promtool, "test", "rules", file], check=True, stdout=subprocess.DEVNULL)

    def fired(self, series, minutes):
        """Which alerts fired at any time in these minutes: their labels, and for how many minutes.

        `series` maps the name and labels of each series to its values, one for each minute; None for a minute without a value.
        """
        document = {
            "rule_files": [str(self.file)], "evaluation_interval": "1m",
            "tests": [{
                "interval": "1m",
                "input_series": [
                    {"series": text(name, labels), "values": " ".join("_" if value is None else f"{value:.17g}" for value in values)}
                    # Leaves out counters that stay 0, because they have no effect on the alerts.
                    for (name, labels), values in series.items() if name in self.names and (any(values) or not is_counter(name))],
                # promtool prints the alerts that it found if they differ from the expected ones, so expect a wrong result.
                "promql_expr_test": [{
                    "expr": 'count_over_time(ALERTS{alertstate="firing"}[10d]) or vector(0)', "eval_time": f"{minutes - 1}m"}]}]}
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            json.dump(document, file)
            file.flush()
            done = subprocess.run([self.promtool, "test", "rules", file.name], capture_output=True, text=True)
        output = done.stdout + done.stderr
        if "{} 0E+00" not in output:
            raise RuntimeError(f"promtool: {output}")
        return [(dict((label, value) for label, _, value in MATCHER.findall(labels)), int(float(count)))
                for labels, count in re.findall(r'\{([^}]*alertname="[^}]*)\} ([0-9.E+]+)', output)]

    def problems(self, keys, expressions):
        """Selectors that match none of these series, and labels that no such series has."""
        for expression in expressions:
            known = set(ADDED) | ({"alertname", "alertstate", "severity"} if "ALERTS" in expression else set())
            for name, matchers in SELECTOR.findall(expression):
                found = [dict(labels) for known_name, labels in keys if known_name == name]
                known |= {label for labels in found for label in labels}
                if not any(all(matches(labels | ADDED, *matcher) for matcher in MATCHER.findall(matchers)) for labels in found):
                    yield f"no series of the service is {name}{{{matchers}}}"
            for labels in re.findall(r"\b(?:by|without|on|ignoring) ?\(([a-z_, ]+)\)", expression):
                for label in set(re.split(", *", labels.strip())) - known:
                    yield f"no series has the label {label} in: {expression}"


def matches(labels, name, operator, wanted):
    if name not in labels:
        return False
    is_equal = re.fullmatch(wanted, labels[name]) is not None if "~" in operator else labels[name] == wanted
    return is_equal != operator.startswith("!")


def text(name, labels):
    return name + "{" + ",".join(f'{label}="{value}"' for label, value in {**ADDED, **dict(labels)}.items()) + "}"


def is_counter(name):
    return name.endswith(("_total", "_bucket", "_count", "_sum"))


# Minutes before a fault.
QUIET = 20


def lasting(before, after, minutes=30):
    """The series of a lasting fault: quiet, then the change between two scrapes is repeated each minute."""
    series = {}
    for key in before.values.keys() | after.values.keys():
        first = before.value(key) if key in before.values else None
        last = after.value(key) if key in after.values else None
        if is_counter(key[0]) and last is not None:
            # A series for an app exists from the app's first event on.
            later = [(first or 0) + max(0.0, last - (first or 0)) * minute for minute in range(1, minutes + 1)]
        else:
            later = [last] * minutes
        series[key] = [first] * QUIET + later
    return series


def day(scrapes):
    """The series of a day, in which the change between each two scrapes is repeated."""
    series, minutes = {}, 24 * 60
    for key in scrapes[0].values:
        if not is_counter(key[0]):
            values = [scrapes[minute % len(scrapes)].value(key) for minute in range(minutes)]
        else:
            found = [scrape.values[key] for scrape in scrapes]
            steps = [max(0.0, later - earlier) for earlier, later in zip(found, found[1:])]
            values = [found[0]]
            while len(values) < minutes:
                values.append(values[-1] + steps[len(values) % len(steps)])
        series[key] = values
    return series


def held(scrapes, minutes):
    """The series of some scrapes. The values of each scrape are repeated for `minutes` minutes."""
    keys = {key for scrape in scrapes for key in scrape.values}
    return {key: [scrape.value(key) if key in scrape.values else None for scrape in scrapes for _ in range(minutes)] for key in keys}
