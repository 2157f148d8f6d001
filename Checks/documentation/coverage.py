#!/usr/bin/env python3
"""Checks that each public symbol of the library products of both packages has a documentation comment.

    Checks/documentation/coverage.py              after `swift build`: reads the modules of the debug builds, not the sources
    Checks/documentation/coverage.py --self-test  whether the check notices each kind of symbol, and skips what it should

Symbols that the compiler writes do not count, such as the `==` of an Equatable struct. Neither does a member that takes its
comment from a protocol or a class of another module, such as `description`. The comment of a function for C may be in the C
header. Code that only Apple's compiler compiles is not read.
"""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import urllib.parse

ROOT = pathlib.Path(__file__).resolve().parents[2]
TOOLS = pathlib.Path(os.path.realpath(shutil.which("swift") or "swift")).parent


def output(*command, folder=ROOT):
    """The standard output of a command. Ends the check with the command's errors if it fails."""
    result = subprocess.run([str(word) for word in command], cwd=folder, capture_output=True, text=True)
    if result.returncode:
        sys.exit(f"{' '.join(map(str, command[:4]))}: {result.stderr.strip()}")
    return result.stdout


def graph(module, flags):
    """The public symbols of a built module, and those that it adds to types of other modules."""
    triple = json.loads(output(TOOLS / "swiftc", "-print-target-info"))["target"]["triple"]
    with tempfile.TemporaryDirectory() as folder:
        output(
            TOOLS / "swift-symbolgraph-extract", "-module-name", module, "-target", triple, "-minimum-access-level", "public",
            "-skip-synthesized-members", "-output-dir", folder, *flags)
        files = sorted(pathlib.Path(folder).glob(f"{module}*.symbols.json"))
        return [symbol for file in files for symbol in json.loads(file.read_text())["symbols"]]


def written(symbols, module):
    """The symbols of the module's own sources that need a comment of their own."""
    for symbol in symbols:
        is_described_elsewhere = symbol.get("docComment", {}).get("module", module) != module
        if "location" in symbol and not is_described_elsewhere:
            yield symbol


def is_documented(symbol, headers):
    """Whether the symbol has a comment with text. `headers` is the text of the C headers that declare the module's `@_cdecl` functions."""
    c_name = re.match(r'@_cdecl\("(\w+)"\)', symbol["declarationFragments"][0]["spelling"])
    if c_name and re.search(rf"\*/\n[^\n;]*\b{c_name[1]}\(", headers):
        return True
    lines = symbol.get("docComment", {}).get("lines", [])
    return any(character.isalpha() for line in lines for character in line["text"])


def place(symbol):
    """The file, relative to the repository if it is inside, and the line."""
    path = pathlib.Path(urllib.parse.unquote(urllib.parse.urlsplit(symbol["location"]["uri"]).path))
    path = path.relative_to(ROOT) if path.is_relative_to(ROOT) else path
    return str(path), symbol["location"]["position"]["line"] + 1


def libraries(package):
    """The modules of the package's library products, and the compiler flags that loading them needs."""
    manifest = json.loads(output("swift", "package", "dump-package", folder=package))
    built = pathlib.Path(output("swift", "build", "--show-bin-path", folder=package).strip())
    flags = ["-I", built / "Modules"]
    for folder, pattern in [
        (built, "*.build/module.modulemap"), (package, ".build/checkouts/*/Sources/*/module.modulemap"),
        (package, ".build/checkouts/*/Sources/*/include/module.modulemap"), (package, "Sources/*/module.modulemap"),
    ]:
        for file in sorted(folder.glob(pattern)):
            flags += ["-Xcc", f"-fmodule-map-file={file}"]
    for target in manifest["targets"]:
        if target.get("pkgConfig"):
            for flag in output("pkg-config", "--cflags-only-I", target["pkgConfig"]).split():
                flags += ["-Xcc", flag]
    modules = {target for product in manifest["products"] if "library" in product["type"] for target in product["targets"]}
    return sorted(modules), flags


def run():
    missing, totals = [], [0, 0]
    rows = []
    for package in [ROOT, ROOT / "Service"]:
        modules, flags = libraries(package)
        headers = "\n".join(file.read_text() for file in sorted(package.glob("Sources/*/include/*.h")))
        for module in modules:
            symbols = list(written(graph(module, flags), module))
            bare = [symbol for symbol in symbols if not is_documented(symbol, headers)]
            rows.append((module, len(symbols) - len(bare), len(symbols)))
            missing += sorted((*place(symbol), ".".join(symbol["pathComponents"])) for symbol in bare)
    rows.append(("all", sum(row[1] for row in rows), sum(row[2] for row in rows)))
    print(f"{'module':<26}{'documented':>10}{'public':>8}{'%':>7}")
    for module, documented, public in rows:
        # Rounded down: 100 means all.
        print(f"{module:<26}{documented:>10}{public:>8}{documented * 1000 // max(public, 1) / 10:>7}")
    for path, line, name in missing:
        print(f"{path}:{line}: {name} is public and has no documentation comment", file=sys.stderr)
    return 1 if missing else 0


SELF_TEST = '''
public struct Bare { // missing
    public var stored = 1 // missing
    /// Documented.
    public static let shared = Bare()
    public init() {} // missing
    public func call() {} // missing
    public subscript(index: Int) -> Int { index } // missing
    var hidden = 1
    package var own = 1
    @_spi(Own) public var spi = 1
    public enum Kind: String, Codable { // missing
        case one // missing
        /// Documented.
        case two
        // Not a documentation comment.
        case three // missing
        ///
        case four // missing
    }
}

/// Documented. The members that the compiler writes do not count.
public struct Compared: Hashable, Codable {
    let value: Int
}

/// Documented. The comments of these members are the standard library's.
public struct Described: Equatable, CustomStringConvertible {
    public var description: String { "" }
    public static func == (a: Self, b: Self) -> Bool { true }
}

/// Documented.
public protocol Rule {
    associatedtype Value // missing
    /// Documented.
    func judge() -> Int
    func appeal() -> Int // missing
}

/// Documented.
public struct Judge: Rule {
    public typealias Value = Int // missing
    public func judge() -> Int { 1 }
    public func appeal() -> Int { 1 } // missing
}

/// Documented.
open class Base {
    /// Documented.
    open func act() {}
}

/// Documented.
public final class Derived: Base {
    public override func act() {}
    public func rest() {} // missing
}

extension Int {
    public var isEven: Bool { self % 2 == 0 } // missing
}

public func free() {} // missing
public let number = 1 // missing
infix operator <~
public func <~ (a: Bare, b: Bare) -> Bool { true } // missing

@_cdecl("described_in_header")
public func describedInHeader() {}
/// Documented.
@_cdecl("in_no_header_either")
public func documentedHere() {}
@_cdecl("bare_in_header")
public func bareInHeader() {} // missing
@_cdecl("in_no_header")
public func inNoHeader() {} // missing
'''
SELF_TEST_HEADER = '''
/* Documented. */
void described_in_header(void);
void bare_in_header(void);
'''


def self_test():
    """Compiles a module, and expects exactly the lines that are marked in it."""
    with tempfile.TemporaryDirectory() as folder:
        source = pathlib.Path(folder) / "Planted.swift"
        source.write_text(SELF_TEST)
        output(
            TOOLS / "swiftc", "-emit-module", "-emit-module-path", pathlib.Path(folder) / "Planted.swiftmodule", "-module-name", "Planted",
            "-package-name", "planted", "-parse-as-library", source)
        symbols = list(written(graph("Planted", ["-I", folder]), "Planted"))
    found = {place(symbol)[1] for symbol in symbols if not is_documented(symbol, SELF_TEST_HEADER)}
    expected = {number for number, line in enumerate(SELF_TEST.split("\n"), 1) if line.endswith("// missing")}
    failures = [f"line {number}: not noticed" for number in sorted(expected - found)]
    failures += [f"line {number}: noticed without reason" for number in sorted(found - expected)]
    print("\n".join(failures) or f"{len(expected)} symbols without a comment noticed, {len(symbols) - len(expected)} with one passed")
    return 1 if failures else 0


def main(arguments):
    if arguments not in ([], ["--self-test"]):
        print(__doc__, file=sys.stderr)
        return 2
    return self_test() if arguments else run()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
