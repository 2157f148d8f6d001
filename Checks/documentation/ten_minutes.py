#!/usr/bin/env python3
"""Runs the commands of the page "Ten minutes" in its order, against the given binary.

    Checks/documentation/ten_minutes.py Service/.build/debug/synheart-auth

Ports are free ones on loopback in place of the page's. Commands of other tools (git, swift, mkcert, cloudflared) are not run; a
self-signed certificate stands in for mkcert's.
"""
import json
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile
import threading

PAGE = pathlib.Path(__file__).resolve().parents[2] / "Sources/SynheartAuth/SynheartAuth.docc/TenMinutes.md"
OTHERS = {"git", "cd", "swift", "export", "mkcert", "cloudflared"}


class Service:
    """A running `serve`, with the page's options."""

    def __init__(self, binary, options, folder):
        place = {"--host": "127.0.0.1", "--port": "0"}
        options = list(options)
        for index, option in enumerate(options[:-1]):
            options[index + 1] = place.get(option, options[index + 1])
        if "--port" not in options:
            options += ["--port", "0"]
        self.process = subprocess.Popen(
            [binary, "serve", *options, "--operations-port", "0"], cwd=folder, text=True, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL)
        limit = threading.Timer(30, self.process.kill)
        limit.start()
        ready = self.process.stdout.readline()
        limit.cancel()
        found = re.search(r"ready public=(\S+)", ready)
        if not found:
            sys.exit(f"serve {options}: no ready line, but {ready!r}")
        self.url = found.group(1)

    def stop(self):
        self.process.terminate()
        self.process.wait(30)


def blocks(page, language):
    """The code blocks of this language."""
    return [text for found, text in re.findall(r"^```(\w*)\n(.*?)^```$", page, re.S | re.M) if found == language]


def commands(page):
    """The lines of the blocks without a language, as words."""
    lines = [line for block in blocks(page, "") for line in block.splitlines()]
    return [words for line in lines if (words := shlex.split(line, comments=True))]


def run(words, folder):
    """The output of a command that must succeed."""
    output = None
    if ">" in words:
        output = pathlib.Path(folder) / words[words.index(">") + 1]
        words = words[:words.index(">")]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=60)
    if done.returncode:
        sys.exit(f"{shlex.join(words)}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
    if output:
        output.write_text(done.stdout)
    return done.stdout


def status(url, folder):
    """The answer to an unsigned status request. The certificate is trusted."""
    return json.loads(run(
        ["curl", "-s", "--cacert", "laptop.local.pem", f"{url}/auth/v1/device/status"], folder))


def main(binary):
    page = PAGE.read_text()
    binary = str(pathlib.Path(binary).resolve())
    with tempfile.TemporaryDirectory() as folder:
        (pathlib.Path(folder) / "app.json").write_text(blocks(page, "json")[0])
        run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
             "-subj", "/CN=laptop.local", "-addext", "subjectAltName=IP:127.0.0.1",
             "-out", "laptop.local.pem", "-keyout", "laptop.local-key.pem"], folder)
        service = None
        count = 0
        output = ""
        try:
            for words in commands(page):
                if words[0] in OTHERS:
                    continue
                count += 1
                if words[:2] == ["synheart-auth", "serve"]:
                    if service:
                        service.stop()
                    service = Service(binary, words[2:], folder)
                    answer = status(service.url, folder)
                    if answer.get("error") != "INVALID_REQUEST":
                        sys.exit(f"the service answers {answer}")
                    continue
                if words[0] == "synheart-auth":
                    words[0] = binary
                    if words[1:3] == ["device", "register"]:
                        # On the page, this command uses the default address. Here, start a service without options, and name its address.
                        service.stop()
                        service = Service(binary, [], folder)
                        words += ["--url", service.url]
                if words[0] == "curl":
                    words = ["curl", "-s", *[word.replace("http://127.0.0.1:8080", service.url) for word in words[1:]]]
                output = run(words, folder)
        finally:
            if service:
                service.stop()
        if json.loads(output).get("status") != "registered":
            sys.exit(f"the last command prints {output}")
        if count < 10:
            sys.exit(f"the page has {count} commands of ours; were the blocks found?")
        # Check the commands that the text names. With an unknown subcommand, --help prints the help of its parent.
        for name in re.findall(r"`synheart-auth ([a-z]+(?: [a-z][a-z-]*)*)", page):
            if f"USAGE: synheart-auth {name} " not in run([binary, *name.split(), "--help"], folder):
                sys.exit(f"there is no synheart-auth {name}")
    print(f"{count} commands of Ten minutes work")


main(sys.argv[1])
