#!/usr/bin/env python3
"""Checks the page docs/where-is-the-rule.md: each rule names a file, and the text of the one line in it that decides the rule.

    Checks/documentation/rules.py              each text occurs once in its file, at the line of the row's link
    Checks/documentation/rules.py --fix        corrects the line numbers; a text that is gone or occurs twice remains an error
    Checks/documentation/rules.py --self-test  whether the check notices a broken page, and a changed file
"""
import pathlib
import posixpath
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = "docs/where-is-the-rule.md"
FIX = "Checks/documentation/rules.py --fix"
MINIMUM = 30

# | rule | chapter of the protocol, or none | [file](path#Lnn) | `text of the line` |
ROW = re.compile(
    r"\| (?P<rule>[^|]+) \| (?P<chapter>none|\[[^]|]+\]\([^)|]+\)) "
    r"\| \[(?P<name>[^]|]+)\]\((?P<path>[^)#|]+)#L(?P<line>[0-9]+)\) \| `(?P<text>[^`|]+)` \|")
CHAPTER = re.compile(r"\[(?P<title>[^]]+)\]\((?P<target>[^)#]+)#(?P<anchor>[^)]+)\)")


def read_file(path):
    """The text of a file of the repository; None if there is none."""
    file = ROOT / path
    return file.read_text() if file.is_file() else None


def chapters(text):
    """Title and anchor of each heading, as GitHub makes them."""
    titles = re.findall(r"^#+ (.+)$", text, re.M)
    return {(title, re.sub(r"[^a-z0-9 -]", "", title.lower()).replace(" ", "-")) for title in titles}


def resolved(target):
    """The target of a link of the page, relative to the root of the repository."""
    return posixpath.normpath(posixpath.join(posixpath.dirname(PAGE), target))


def places(text, wanted):
    """The line numbers, from 1, in which a text occurs; a line is repeated for each occurrence in it."""
    return [number for number, line in enumerate(text.split("\n"), 1) for _ in range(line.count(wanted))]


class Check:
    """The problems of a page, and the page with corrected line numbers."""

    def __init__(self, page, read):
        self.read = read
        self.problems = []
        self.rows = 0
        self.seen = {}
        lines = page.split("\n")
        heads = {number + change for number, line in enumerate(lines) if re.fullmatch(r"\|[-|]+\|", line) for change in (-1, 0)}
        for number, line in enumerate(lines):
            if line.startswith("|") and number not in heads:
                lines[number] = self.row(line, number + 1)
        if self.rows < MINIMUM:
            self.problems.append((f"{PAGE}: {self.rows} rules, at least {MINIMUM} are expected", False))
        self.fixed = "\n".join(lines)

    def row(self, line, number):
        """Checks a row. Returns it with the right line number."""
        self.rows += 1
        row = ROW.fullmatch(line)
        if not row:
            self.fail(number, "not a row: | rule | chapter or none | [file](path#Lnn) | `text of the line` |")
            return line
        self.chapter(row["chapter"], number)
        path, text = resolved(row["path"]), row["text"]
        if row["name"] != posixpath.basename(path):
            self.fail(number, f"the link is named {row['name']}, and leads to {path}")
        earlier = self.seen.setdefault((path, text), number)
        if earlier != number:
            self.fail(number, f"line {earlier} has the same place: one row for both rules")
        source = self.read(path)
        if source is None:
            self.fail(number, f"there is no file {path}")
            return line
        found = places(source, text)
        if len(found) != 1:
            where = f"in lines {', '.join(map(str, found))}" if found else "nowhere"
            self.fail(number, f"`{text}` must stand once in {path}, and stands {where}: name the text that decides the rule now")
            return line
        if found[0] != int(row["line"]):
            self.fail(number, f"`{text}` is in line {found[0]} of {path}, not {row['line']}: run {FIX}", isFixable=True)
        return line[:row.start("line")] + str(found[0]) + line[row.end("line"):]

    def chapter(self, text, number):
        if text == "none":
            return
        chapter = CHAPTER.fullmatch(text)
        document = self.read(resolved(chapter["target"])) if chapter else None
        if document is None:
            self.fail(number, f"{text} leads to no file")
        elif (chapter["title"], chapter["anchor"]) not in chapters(document):
            self.fail(number, f"{chapter['target']} has no chapter {chapter['title']} at #{chapter['anchor']}")

    def fail(self, number, problem, isFixable=False):
        self.problems.append((f"{PAGE}:{number}: {problem}", isFixable))


def self_test():
    """Breaks copies of the page and of its files in memory, and expects the problem of each."""
    page = read_file(PAGE)
    first = next(row for line in page.split("\n") if (row := ROW.fullmatch(line)) and row["chapter"] != "none")
    path, text, link = resolved(first["path"]), first["text"], f"#L{first['line']}) | `{first['text']}`"
    source = read_file(path)
    if Check(page, read_file).problems:
        sys.exit("the page has problems: run the check without --self-test first")

    def with_source(changed):
        return lambda name: changed if name == path else read_file(name)

    def cut(count):
        kept = iter(range(count))
        return "\n".join(line for line in page.split("\n") if not ROW.fullmatch(line) or next(kept, None) is not None)

    shifted = "\n" + source
    broken = {
        "another line number": (page.replace(link, link.replace("#L", "#L9")), read_file, "run " + FIX),
        "a file with a new line": (page, with_source(shifted), "run " + FIX),
        "a file without the text": (page, with_source(source.replace(text, "")), "stands nowhere"),
        "a file with the text twice": (page, with_source(source + "\n" + text), "stands in lines"),
        "a line with the text twice": (page, with_source(source.replace(text, text + text)), "stands in lines"),
        "no file": (page, with_source(None), "there is no file"),
        "a text that the file does not have": (page.replace(f"`{text}`", f"`{text}!`"), read_file, "stands nowhere"),
        "another name": (page.replace(f"[{first['name']}]({first['path']}", f"[Other.swift]({first['path']}"), read_file, "is named"),
        "a row without a line number": (page.replace(link, link.replace(f"#L{first['line']}", "")), read_file, "not a row"),
        "a chapter that is not there": (page.replace(first["chapter"], "[Nothing](protocol.md#nothing)"), read_file, "has no chapter"),
        "a document that is not there": (page.replace(first["chapter"], "[Order](other.md#order)"), read_file, "leads to no file"),
        "the same row twice": (page.replace(first.group(), first.group() + "\n" + first.group()), read_file, "has the same place"),
        "too few rules": (cut(MINIMUM - 1), read_file, f"{MINIMUM - 1} rules"),
        "an empty page": ("", read_file, "0 rules"),
    }
    failures = []
    for name, (changed, read, expected) in broken.items():
        if not any(expected in problem for problem, _ in Check(changed, read).problems):
            failures.append(f"{name}: not noticed")
    if Check(cut(MINIMUM), read_file).problems:
        failures.append(f"{MINIMUM} rules: refused")
    fixed = Check(page, with_source(shifted)).fixed
    if fixed == page or Check(fixed, with_source(shifted)).problems:
        failures.append("a file with a new line: not fixed")
    if Check(page, with_source(source + "\n" + text)).fixed != page:
        failures.append("a text that stands twice: a line was chosen")
    for failure in failures:
        print(failure, file=sys.stderr)
    return 1 if failures else 0


def main(arguments):
    if arguments == ["--self-test"]:
        return self_test()
    if arguments not in ([], ["--fix"]):
        print(__doc__, file=sys.stderr)
        return 2
    page = read_file(PAGE)
    if page is None:
        print(f"there is no {PAGE}", file=sys.stderr)
        return 1
    check = Check(page, read_file)
    problems = check.problems
    if arguments == ["--fix"]:
        (ROOT / PAGE).write_text(check.fixed)
        problems = [problem for problem in problems if not problem[1]]
    for problem, _ in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
