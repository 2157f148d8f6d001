#!/usr/bin/env python3
"""Follows pages as a reader does, those of the README's "Three doors" first, and compares what the commands print with the page.

    Checks/documentation/pages.py Service/.build/debug/synheart-auth             every page
    Checks/documentation/pages.py Service/.build/debug/synheart-auth backend     one page; `docs` and `handbook` are the two groups
    Checks/documentation/pages.py --commands                                     whether each command of the operators' pages is run
    Checks/documentation/pages.py --self-test                                    whether the comparison notices a difference

The `sh` blocks of a page run in one bash, in order. A `text` block after one is its output. There, `…` stands for any text in
a line, and a line with only `…` for any lines. Ids, times and other values that differ between runs are compared by their form. Where
a block repeats a device id, the output must repeat it too. Free ports replace the page's ports, and the given binary replaces the build.
Samples in other languages are checked by compilers.

The operators' pages, in AuthServer.docc, are followed on a stand-in for a machine with the Debian package: machine.py. Their `console`
blocks are not run; NOT_RUN has the reason of each.
"""
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time

from machine import DOCC, MACHINES, Machine, parts

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "Checks"))

from ports import free_port  # noqa: E402

# The pages, with the smallest number of outputs that must be compared on each.
PAGES = {"app": 4, "backend": 6, "operate": 8, "coming-from-devicecheck": 3, "tokens": 3, "FirstHour": 7,
         "RollOut": 9, "IncidentsOfDevices": 13, "IncidentsOfKeys": 9, "IncidentsOfMachines": 11, "RotatingSecrets": 9,
         "Operating": 5, "BackupAndRestore": 2, "Alerts": 0, "History": 1, "NewRoots": 1, "SeveralNodes": 1, "Webhooks": 3, "Console": 1, "Upgrades": 1, "Capacity": 2}
# The `console` blocks of the operators' pages, by page and first line, and why they are not run.
NOT_RUN = {
    ("Operating", "synheart-auth audit --follow --json --after 4711"): "it goes on until it is stopped; AuditFollowTests follow the log",
    ("BackupAndRestore", "systemd-run --wait --pipe --uid=synheart-auth -p LoadCredential=service_key:synheart-auth.service_key \\"):
        "it needs systemd; the same backup without it is run",
    ("SeveralNodes", "export SYNHEART_AUTH_STORES_POSTGRESQL='postgresql://auth:…@pg1,pg2/auth'"):
        "it needs two PostgreSQL servers and three Sentinels; scripts/cluster and Checks/upgrades/rolling run the commands",
    ("Upgrades", "sudo apt install ./synheart-auth_*.deb"): "it needs a package; Checks/package/check installs and upgrades one",
}
# The beginnings of commands in the alerts' sections that are not run, and why.
ALERTS_NOT_RUN = {
    "psql": "it needs a PostgreSQL of one's own", "timedatectl": "it is the machine's", "systemctl show": "it is systemd's",
    "journalctl --disk-usage": "it is systemd's", "curl -sI https:": "Google answers it",
}
# Words that begin a command. A code block that begins with one of them must have the language `sh` or `console`.
COMMANDS = r"(?:synheart-auth|auth|sudo|curl|systemctl|systemd-run|journalctl|openssl|psql|redis-cli|jq|export|printf|apt|kill|\w+=\$\()\b"
PORTS = ("8080", "9464", "8000", "6379")
# Values that differ between runs: a pattern for the page, and a pattern for the output. If the second is None, the output may have any
# value that matches the page's pattern. But where the page repeats a value, the output must repeat its value too.
VALUES = [
    (r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}", None),
    # A list shows `-` until the service has written when it last saw the device, about a second after a request.
    (r"(?m)(?<=[0-9]Z)  -$", r"  (?:-|[0-9-]{10}T[0-9:]{8}Z)"),
    (r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z", r"[0-9-]{10}T[0-9:]{8}Z"),
    (r"\b1[0-9]{9}\b", r"[0-9]{10}"),
    (r"\b[0-9]+ MiB\b", r"[0-9]+ MiB"),
]
COMPILED = [
    "Sources/SynheartAuth/SynheartAuth.docc/TenMinutes.md", "Examples/phone/Sources/phone/main.swift",
    "Clients/android/README.md", "Clients/flutter/synheart_auth/README.md",
    "Checks/tokens/with_pyjwt.py", "Checks/tokens/with_authlib.py", "Checks/tokens/with_go_oidc.go", "Checks/tokens/WithGoogleOAuth.java",
]


def blocks(page):
    """Language and text of each code block."""
    return re.findall(r"^```(\w*)\n(.*?)^```$", page, re.S | re.M)


def pattern(expected):
    """The regular expression for a block of output. A value that the block repeats must be repeated in the output."""
    marks, groups = [], {}

    def mark(expression):
        marks.append(expression)
        return f"\x00{len(marks) - 1}\x00"

    text = re.sub(r"^…\n", lambda _: mark(r"(?s:.*\n)?"), expected, flags=re.M)
    text = text.replace("…", mark(r".*"))
    for shown, form in VALUES:
        def value(found, shown=shown, form=form):
            if form:
                return mark(form)
            name = groups.get(found.group())
            if name:
                return mark(f"(?P={name})")
            groups[found.group()] = name = f"value{len(groups)}"
            return mark(f"(?P<{name}>{shown})")
        text = re.sub(shown, value, text)
    return re.sub("\x00([0-9]+)\x00", lambda found: marks[int(found.group(1))], re.escape(text).replace("\\\x00", "\x00"))


def matches(expected, output):
    return re.fullmatch(pattern(expected), output) is not None


class Shell:
    """A bash process that runs the blocks of a page. Processes that a block starts in the background keep running. `command` may start
    bash on a simulated machine, on which the folder has the path `place`.
    """

    def __init__(self, folder, environment, command=("bash", "--noprofile", "--norc"), place=None):
        self.process = subprocess.Popen(
            command, cwd=ROOT, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            start_new_session=True)
        self.folder, self.place, self.count = pathlib.Path(folder), place or folder, 0
        self.output, self.changed = b"", threading.Condition()
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        while piece := os.read(self.process.stdout.fileno(), 65536):
            with self.changed:
                self.output += piece
                self.changed.notify_all()

    def run(self, block, expected, seconds):
        """Runs a block. Returns its output when it matches, or after the time limit."""
        # Waits, as a reader does: the service may need a moment to write its log.
        time.sleep(0.3)
        self.count += 1
        (self.folder / f"block{self.count}").write_text(block)
        end = f"\x1e{self.count} ".encode()
        with self.changed:
            self.output = b""
        self.process.stdin.write(f"failed=0; . {self.place}/block{self.count}; printf '\\036{self.count} %s\\036' $failed\n".encode())
        self.process.stdin.flush()
        deadline = time.monotonic() + seconds
        with self.changed:
            while True:
                found = re.search(re.escape(end) + rb"([0-9]+)\x1e", self.output)
                text = (self.output[:found.start()] + self.output[found.end():] if found else self.output).decode()
                isLate = time.monotonic() > deadline
                # A block that ends with `&` starts a server, which may print its output later. So wait for that output.
                if found and (found.group(1) != b"0" or expected is None or matches(expected, text)) or isLate:
                    return found.group(1).decode() if found else "none", text
                if found and not re.search(r"&$", block, re.M):
                    return found.group(1).decode(), text
                self.changed.wait(max(0, min(1, deadline - time.monotonic())))

    def end(self):
        os.killpg(self.process.pid, signal.SIGTERM)
        self.process.wait(30)


def path(name):
    """The file of a page: in docs/, or among the operators' pages."""
    page = ROOT / f"docs/{name}.md"
    return page if page.exists() else DOCC / f"{name}.md"


def follow(name, binary):
    """Runs a page's blocks. Returns how many outputs were compared."""
    text = path(name).read_text()
    if MACHINES.joinpath(name).is_dir():
        return sum(follow_on_machine(name, binary, script, part) for script, part in parts(name, text))
    ports = {port: str(free_port()) for port in PORTS}
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        shell = Shell(folder, environment(folder) | {
            "SYNHEART_AUTH_PORT": ports["8080"], "SYNHEART_AUTH_OPERATIONS_PORT": ports["9464"]})

        def placed(text):
            for port, free in ports.items():
                text = text.replace(f"127.0.0.1:{port}", f"127.0.0.1:{free}")
            return text + f"PATH={binary.parent}:$PATH\n" if "scripts/demo" in text else text

        try:
            # The binary is already built, so scripts/demo does nothing here.
            shell.run("scripts/demo() { :; }\ntrap 'failed=$?' ERR\n", None, 10)
            return run_blocks(name, text, shell, placed)
        finally:
            shell.end()


def follow_on_machine(name, binary, script, part):
    """Runs the blocks of a part of an operators' page on a separate simulated machine."""
    with tempfile.TemporaryDirectory(prefix="m", dir="/tmp", ignore_cleanup_errors=True) as folder:
        machine = Machine(folder, binary, script, {port: str(free_port()) for port in PORTS})
        if machine.command is None:
            print(f"{script.stem} of {name}: this system mounts no small disk; its commands were not run", flush=True)
            return sum(language == "text" for language, _ in blocks(part))
        shell = Shell(machine.folder / "run", environment(folder) | machine.environment, command=machine.command)
        try:
            shell.run("trap 'failed=$?' ERR\n", None, 10)
            code, output = shell.run(machine.prologue, None, 120)
            if code != "0":
                sys.exit(f"{script}: exit code {code}\n{output}")
            return run_alerts(part, shell, machine.placed) if name == "Alerts" else run_blocks(name, part, shell, machine.placed)
        finally:
            shell.end()
            machine.end()


def run_alerts(page, shell, placed):
    """Runs the commands of the alerts' sections. Does not compare their output. A command that finds nothing may end with 1."""
    commands = set(re.findall(r"^- \*\*Command:\*\* `(.+)`$", page, re.M))
    for kind in ALERTS_NOT_RUN:
        if not any(command.startswith(kind) for command in commands):
            sys.exit(f"Alerts: there is no command any more that begins with {kind}")
    for command in sorted(command for command in commands if not command.startswith(tuple(ALERTS_NOT_RUN))):
        code, output = shell.run(f"{placed(command)} || [ $? -eq 1 ]\n", None, 120)
        if code != "0":
            sys.exit(f"Alerts: exit code {code} of {command}\n{output}")
    return 0


def environment(folder):
    """The variables for a shell, without those of the test run that configure the service."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith("SYNHEART_AUTH_")}
    return kept | {
        "TMPDIR": folder, "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "PIP_CONSTRAINT": str(ROOT / "Backends/testing/constraints.txt"), "PYTHONUNBUFFERED": "1"}


def run_blocks(name, page, shell, placed):
    """Runs the shell blocks of a page, and compares their output with the text block that follows. Code in other languages
    must stand in a compiled file. `placed` replaces the paths and ports of a text by those of this run. Returns the number
    of compared outputs."""
    compiled = "\n".join(squeezed((ROOT / path).read_text()) for path in COMPILED)
    compared, found = 0, blocks(page)
    for index, (language, text) in enumerate(found):
        if language in ("swift", "kotlin", "dart", "python", "go", "java") and squeezed(text) not in compiled:
            sys.exit(f"{name}: this code stands in no file that is compiled:\n{text}")
        if language != "sh":
            continue
        text = placed(text)
        expected = placed(found[index + 1][1]) if index + 1 < len(found) and found[index + 1][0] == "text" else None
        code, output = shell.run(text, expected, 900 if "swift build" in text else 120)
        if code != "0" or expected is not None and not matches(expected, output):
            sys.exit(f"{name}: exit code {code} of\n\n{text}\nexpected:\n{expected}\nprinted:\n{output}")
        compared += expected is not None
    return compared


def unrun(pages, listed=NOT_RUN):
    """The faults of the operators' pages, given as texts by name: commands that no test runs, and entries
    of `listed` whose block is gone."""
    found = set()
    for name, page in sorted(pages.items()):
        for language, text in blocks(page):
            first = text.partition("\n")[0]
            if language == "console":
                found.add((name, first))
            elif language == "" and re.match(COMMANDS, first):
                yield f"{name}: say `sh` or `console` at the block with {first}"
            elif language == "sh" and name not in PAGES:
                yield f"{name}: it has commands, and no script in {MACHINES.name}/{name} begins it"
        prose = re.sub(r"^```.*?^```$", "", page, flags=re.S | re.M)
        for line in re.findall(rf"(?:^|\n)(?: {{4,}}|\t)({COMMANDS}.*)", prose):
            yield f"{name}: a command in an indented block is not run: {line}"
    yield from (f"{name}: why is this not run? {first}" for name, first in sorted(found - listed.keys()))
    yield from (f"{name}: there is no such block any more: {first}" for name, first in sorted(listed.keys() - found))


def squeezed(text):
    """The lines without their indentation."""
    return "\n".join(line.strip() for line in text.splitlines() if line.strip())


def self_test():
    one, other = "3743fd91-f9e3-4d39-9a32-6f8fa1912e81", "d4addd94-8832-4e37-b71d-5983670d862a"
    shown = f"registered {one}\n…\nat 2026-11-25T22:07:22Z {one}, {{\"a\":1,…}}\n"
    good = shown.replace(one, other).replace("22:07:22", "01:02:03").replace("…\n", "x\ny\n").replace("…", '"b":2')
    cases = {
        "another run": (shown, good, True),
        "no line in place of …": (shown, good.replace("x\ny\n", ""), True),
        "two ids for one": (shown, good.replace(other, one, 1), False),
        "another word": (shown, good.replace("registered", "rejected"), False),
        "another value": (shown, good.replace('"a":1', '"a":2'), False),
        "another form of time": (shown, good.replace("T01", " 01"), False),
        "a line more": (shown, good + "more\n", False),
        "a line less": (shown, good.split("\n", 1)[1], False),
        "nothing": (shown, "", False),
    }
    broken = {
        "a new block that is not run": "```console\nreboot\n```\n", "commands in a block without a language": "```\nauth x\n```\n",
        "commands in an indented block": "So:\n\n    curl http://127.0.0.1\n", "a page that nothing follows": "```sh\ntrue\n```\n",
    }
    notices = {name: list(unrun({"Page": text}, {})) for name, text in broken.items()}
    if unnoticed := [name for name, found in notices.items() if len(found) != 1]:
        sys.exit(f"not noticed: {', '.join(unnoticed)}")
    if list(unrun({"Page": "```sh\n```\n"}, {("Other", "reboot"): "…"}))[-1:] != ["Other: there is no such block any more: reboot"]:
        sys.exit("not noticed: a reason without a block")
    failures = [name for name, (expected, output, result) in cases.items() if matches(expected, output) != result]
    if failures:
        sys.exit(f"judged wrongly: {', '.join(failures)}")


def main(arguments):
    if arguments == ["--self-test"]:
        return self_test()
    if arguments == ["--commands"]:
        problems = list(unrun({page.stem: page.read_text() for page in DOCC.glob("*.md")}))
        if problems:
            sys.exit("\n".join(problems))
        return None
    if not arguments:
        sys.exit(__doc__)
    binary = pathlib.Path(arguments[0]).resolve()
    groups = {"docs": [], "handbook": []}
    for name in PAGES:
        groups["handbook" if MACHINES.joinpath(name).is_dir() else "docs"].append(name)
    for name in [page for argument in arguments[1:] or groups for page in groups.get(argument, [argument])]:
        compared = follow(name, binary)
        if compared < PAGES[name]:
            sys.exit(f"{name}: {compared} outputs, at least {PAGES[name]} are expected; were the blocks found?")
        print(f"{path(name).relative_to(ROOT)}: its commands work, and print what it shows ({compared} outputs)")


if __name__ == "__main__":
    main(sys.argv[1:])
