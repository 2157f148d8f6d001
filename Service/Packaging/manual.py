#!/usr/bin/env python3
"""Writes man pages and shell completions from the command line's own help: manual.py BINARY FOLDER

Output: FOLDER/man/synheart-auth.1 and one page for each command, such as synheart-auth-serve.1; FOLDER/completions for bash, zsh and
fish. The same binary and the same SOURCE_DATE_EPOCH make the same bytes.
"""
import datetime
import json
import os
import re
import subprocess
import sys
from pathlib import Path

NAME = "synheart-auth"
FILES = [
    ("/etc/synheart-auth/synheart-auth.yaml", "The configuration of the packaged service."),
    ("/var/lib/synheart-auth/", "The database of the packaged service and its service key."),
    ("/etc/credstore/synheart-auth.KEY", "A secret of the packaged service, such as stores.postgresql: systemd.exec(5), Credentials."),
]


def escaped(text: str) -> str:
    """Escapes text, so that roff shows it unchanged."""
    text = text.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq").replace("`", "\\(ga").replace("^", "\\(ha")
    return re.sub(r"^\.", r"\\&.", text.replace("~", "\\(ti"), flags=re.MULTILINE)


def prose(text: str) -> str:
    """Text as paragraphs of roff. Indented lines keep their form, and words in backticks are bold."""
    output = []
    for block in re.split(r"\n\s*\n", text.strip("\n")):
        verbatim = False
        output.append(".PP")
        for line in block.split("\n"):
            is_verbatim = line.startswith("  ")
            if is_verbatim != verbatim:
                output.extend([".RS 4", ".nf"] if is_verbatim else [".fi", ".RE"])
                verbatim = is_verbatim
            plain = escaped(line[2:] if is_verbatim else line)
            output.append(plain if is_verbatim else re.sub(r"\\\(ga(.+?)\\\(ga", r"\\fB\1\\fR", plain))
        if verbatim:
            output.extend([".fi", ".RE"])
    return "\n".join(output)


def spelled(name: dict) -> str:
    return ("--" if name["kind"] == "long" else "-") + name["name"]


def placeholder(argument: dict) -> str:
    return f"\\fI{escaped(argument.get('valueName', 'value'))}\\fR"


def shown(command: dict, kind: str) -> list[dict]:
    """The arguments of a kind that help shows, without those that every command has."""
    return [
        argument
        for argument in command.get("arguments", [])
        if argument.get("shouldDisplay", True) and (argument["kind"] == "positional") == (kind == "positional")
        and argument.get("valueName") not in ("help", "version")
    ]


def subcommands(command: dict) -> list[dict]:
    return [other for other in command.get("subcommands", []) if other["commandName"] != "help" and other.get("shouldDisplay", True)]


def synopsis(words: list[str], command: dict) -> str:
    parts = [f"\\fB{escaped(' '.join(words))}\\fR"]
    if subcommands(command):
        parts.append("\\fIcommand\\fR …")
    if shown(command, "option"):
        parts.append("[\\fIoptions\\fR]")
    for argument in shown(command, "positional"):
        text = placeholder(argument) + (" …" if argument.get("isRepeating") else "")
        parts.append(f"[{text}]" if argument.get("isOptional") else text)
    return " ".join(parts)


def arguments(command: dict) -> list[str]:
    output = []
    for kind, title in (("positional", "Arguments"), ("option", "Options")):
        listed = shown(command, kind)
        if listed:
            output.append(f".SS {title}")
        for argument in listed:
            names = ", ".join(f"\\fB{escaped(spelled(name))}\\fR" for name in argument.get("names", []))
            value = placeholder(argument) if kind == "positional" or argument["kind"] == "option" else ""
            output.extend([".TP", " ".join(part for part in (names, value) if part)])
            text = " ".join(part for part in (argument.get("abstract"), argument.get("discussion")) if part)
            if argument.get("defaultValue"):
                text += f" Default: {argument['defaultValue']}."
            # The paragraph of a `.TP` macro must not be empty, so write the invisible character `\&` if there is no text.
            output.append(escaped(" ".join(text.split())) or "\\&")
    return output


def described(words: list[str], command: dict) -> list[str]:
    """A command's description and arguments, then those of its subcommands."""
    output = [".PP", synopsis(words, command), ".PP", escaped(command.get("abstract", ""))]
    if command.get("discussion"):
        output.append(prose(command["discussion"]))
    output.extend(arguments(command))
    for below in subcommands(command):
        path = [*words, below["commandName"]]
        output.extend([f".SH {escaped(' '.join(path[1:])).upper()}", *described(path, below)])
    return output


def page(title: str, abstract: str, version: str, body: list[str], related: list[str]) -> str:
    date = datetime.datetime.fromtimestamp(int(os.environ.get("SOURCE_DATE_EPOCH", "0")), datetime.timezone.utc).date()
    return "\n".join([
        f'.TH {title.upper()} 1 "{date}" "Synheart Auth {version}" "Synheart Auth"',
        ".SH NAME",
        f"{escaped(title)} \\- {escaped(abstract.rstrip('.'))}",
        *body,
        ".SH SEE ALSO",
        *(f".BR {escaped(name)} (1){',' if name != related[-1] else ''}" for name in related),
        "",
    ])


def pages(help: dict, version: str) -> dict[str, str]:
    """The text of each page, by its name."""
    top = help["command"]
    commands = subcommands(top)
    listed = [line for command in commands for line in (
        ".TP", f"\\fB{escaped(NAME)}\\-{escaped(command['commandName'])}\\fR(1)", escaped(command.get("abstract", "")))]
    files = [line for path, text in FILES for line in (".TP", f"\\fI{escaped(path)}\\fR", escaped(text))]
    output = {
        NAME: page(NAME, top["abstract"], version, [
            ".SH SYNOPSIS", synopsis([NAME], top), ".br", f"\\fB{escaped(NAME)} \\-\\-version\\fR | \\fB\\-\\-help\\fR",
            ".SH DESCRIPTION", prose(top["discussion"]), ".SH COMMANDS", *listed, ".SH FILES", *files,
        ], [f"{NAME}-{command['commandName']}" for command in commands])
    }
    for command in commands:
        name = f"{NAME}-{command['commandName']}"
        output[name] = page(name, command["abstract"], version,
                            [".SH DESCRIPTION", *described([NAME, command["commandName"]], command)], [NAME])
    return output


def main() -> int:
    if len(sys.argv) != 3:
        print(__doc__, file=sys.stderr)
        return 64
    binary, folder = Path(sys.argv[1]).resolve(), Path(sys.argv[2])

    def told(*flags: str) -> str:
        return subprocess.run([binary, *flags], check=True, stdout=subprocess.PIPE, text=True, encoding="utf-8").stdout

    (folder / "man").mkdir(parents=True, exist_ok=True)
    (folder / "completions").mkdir(exist_ok=True)
    for name, text in pages(json.loads(told("--experimental-dump-help")), told("--version").strip()).items():
        (folder / "man" / f"{name}.1").write_text(text, encoding="utf-8")
    for shell, name in (("bash", NAME), ("zsh", f"_{NAME}"), ("fish", f"{NAME}.fish")):
        script = told("--generate-completion-script", shell)
        # A shell loads a completion file and does not execute it, so the line `#!/bin/bash` is of no use. zsh's first line,
        # `#compdef`, must stay.
        (folder / "completions" / name).write_text(script.removeprefix("#!/bin/bash\n"), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
