#!/usr/bin/env python3
"""Checks the links of every Markdown page of the repository, and that the index reaches every page of docs/.

    Checks/documentation/links.py              each relative link leads to a file, and its anchor to a heading
    Checks/documentation/links.py --self-test  whether the check notices broken pages

Links of DocC (`<doc:…>`, symbols) are left to DocC, links to other hosts to their readers.
"""
import pathlib
import posixpath
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
INDEX = "docs/README.md"
MINIMUM = 90

CODE = re.compile(r"^(```|~~~).*?^\1\s*$|^(?: {4}|\t).*$|`[^`\n]*`", re.S | re.M)
LINK = re.compile(r"\]\(([^()\s]+)\)|\b(?:src|srcset|href)=\"([^\"]+)\"")


def repository():
    """The names of all files of the repository, and the texts of its Markdown pages."""
    names = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=ROOT, check=True, capture_output=True,
        text=True).stdout.split("\0")
    files = {name for name in names if name and (ROOT / name).is_file()}
    return files, {name: (ROOT / name).read_text() for name in files if name.endswith(".md")}


def anchors(text):
    """The anchors of a page's headings, as GitHub makes them."""
    found, counts = set(), {}
    for title in re.findall(r"^#{1,6} +(.+?) *#*$", re.sub(r"^```.*?^```", "", text, flags=re.S | re.M), re.M):
        title = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", title)
        anchor = re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")
        counts[anchor] = counts.get(anchor, -1) + 1
        found.add(f"{anchor}-{counts[anchor]}" if counts[anchor] else anchor)
    return found


def links(name, text):
    """Each relative link of a page: its target from the repository's root, and its anchor."""
    for found in LINK.finditer(CODE.sub("", text)):
        target, _, anchor = (found.group(1) or found.group(2)).partition("#")
        if re.match(r"[a-z]+:|//", target):
            continue
        yield posixpath.normpath(posixpath.join(posixpath.dirname(name), target)) if target else name, anchor


def problems(files, pages):
    folders = {posixpath.dirname(name) for name in files}
    count, reached, waiting = 0, set(), [INDEX]
    for name, text in sorted(pages.items()):
        for target, anchor in links(name, text):
            count += 1
            if target not in files and target not in folders:
                yield f"{name}: there is no {target}"
            elif anchor and target in pages and anchor not in anchors(pages[target]):
                yield f"{name}: {target} has no heading #{anchor}"
    while waiting:
        name = waiting.pop()
        if name not in reached and name in pages:
            reached.add(name)
            waiting += [target for target, _ in links(name, pages[name])]
    for name in sorted(pages):
        if name.startswith("docs/") and name not in reached:
            yield f"{name}: {INDEX} does not lead there"
    if count < MINIMUM:
        yield f"{count} links, at least {MINIMUM} are expected"


def self_test():
    files, pages = repository()
    if list(problems(files, pages)):
        sys.exit("the pages have problems: run the check without --self-test first")
    index = pages[INDEX]
    broken = {
        "no file": (files, pages | {INDEX: index + "[x](nothing.md)"}, "there is no docs/nothing.md"),
        "no file above": (files, pages | {INDEX: index + "[x](../Nothing.md)"}, "there is no Nothing.md"),
        "no picture": (files, pages | {"README.md": '<img src="docs/nothing.svg">'}, "there is no docs/nothing.svg"),
        "no heading": (files, pages | {INDEX: index + "[x](protocol.md#nothing)"}, "has no heading #nothing"),
        "no heading of its own": (files, pages | {INDEX: index + "[x](#nothing)"}, "has no heading #nothing"),
        "a page that nothing leads to": (
            files | {"docs/lonely.md"}, pages | {"docs/lonely.md": "[x](README.md)"}, "docs/lonely.md: docs/README.md does not lead"),
        "a file that is gone": (files - {"docs/glossary.md"}, pages, "there is no docs/glossary.md"),
        "no links": (files, {INDEX: ""}, "0 links"),
    }
    fine = {
        "a link in code": "`[x](nothing.md)`\n\n```\n[x](nothing.md)\n```\n\n    [x](nothing.md)\n",
        "another host": "[x](https://example.com/nothing.md)",
        "a folder": "[x](vectors)",
        "the second heading of a name": "# Same\n# Same\n[x](#same-1)",
    }
    failures = [
        f"{name}: not noticed" for name, (some, texts, expected) in broken.items()
        if not any(expected in problem for problem in problems(some, texts))]
    failures += [f"{name}: refused" for name, text in fine.items() if list(problems(files, pages | {INDEX: index + "\n\n" + text}))]
    return failures


def main(arguments):
    if arguments not in ([], ["--self-test"]):
        print(__doc__, file=sys.stderr)
        return 2
    found = self_test() if arguments else list(problems(*repository()))
    for problem in found:
        print(problem, file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
