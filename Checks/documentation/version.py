#!/usr/bin/env python3
"""Whether every package names the version of the service.

    Checks/documentation/version.py              compares them
    Checks/documentation/version.py --self-test  whether a difference is found

`Service/Sources/AuthServer/Build.swift` has the version. Each package manager wants it in a file of its own.
"""
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ("Service/Sources/AuthServer/Build.swift", r'version = "([^"]+)"')
COPIES = [
    ("Sources/SynheartAuth/Configuration/SDKVersion.swift", r'StaticString = "([^"]+)"'),
    ("Sources/CSynheartAuth/include/synheart_auth.h", r'^#define SYNHEART_AUTH_VERSION "([^"]+)"'),
    ("Clients/android/synheart-auth/src/main/kotlin/ai/synheart/auth/wire/Names.kt", r'"synheart-auth/(\S+) \(kotlin\)"'),
    ("CHANGELOG.md", r"^## ([0-9][^, \n]*)"),
    ("Clients/android/gradle.properties", r"^VERSION_NAME=(.+)$"),
    ("Clients/flutter/synheart_auth/pubspec.yaml", r"^version: (.+)$"),
    ("Clients/flutter/synheart_auth/CHANGELOG.md", r"^## ([0-9][^, \n]*)"),
    ("Clients/flutter/synheart_auth/android/build.gradle", r'^version = "([^"]+)"'),
    ("Clients/flutter/synheart_auth/android/build.gradle", r'"ai\.synheart:synheart-auth:([^"]+)"'),
    ("Clients/flutter/synheart_auth/ios/synheart_auth.podspec", r"s\.version = '([^']+)'"),
    ("Clients/flutter/synheart_auth/ios/synheart_auth/Package.swift", r'synheart-auth\.git", from: "([^"]+)"'),
    *((f"Clients/pods/{path.name}", r"s\.version = '([^']+)'") for path in sorted((ROOT / "Clients/pods").glob("*.podspec"))),
    ("Backends/node/package.json", r'"version": "([^"]+)"'),
    ("Backends/java/pom.xml", r"<version>([^<]+)</version>"),
    ("Backends/python/pyproject.toml", r'^version = "([^"]+)"'),
]


def version(text: str, pattern: str) -> str | None:
    found = re.search(pattern, text, re.MULTILINE)
    return found.group(1) if found else None


def differences(read) -> list[str]:
    expected = version(read(SOURCE[0]), SOURCE[1])
    if not expected:
        return [f"{SOURCE[0]}: no version"]
    found = ((path, version(read(path), pattern)) for path, pattern in COPIES)
    return [f"{path}: {other or 'no version'}, and the service is {expected}" for path, other in found if other != expected]


def main() -> int:
    read = lambda path: (ROOT / path).read_text(encoding="utf-8")
    if sys.argv[1:] == ["--self-test"]:
        for path, pattern in COPIES:
            text = read(path)
            place = re.search(pattern, text, re.MULTILINE).span(1)
            changed = text[: place[0]] + "9.9.9" + text[place[1] :]
            assert differences(lambda other: changed if other == path else read(other)), path
        assert differences(lambda path: "") == [f"{SOURCE[0]}: no version"]
        return 0
    found = differences(read)
    print("\n".join(found), end="\n" if found else "", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
