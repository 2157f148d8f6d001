"""The Dart example: that it parses, and binds the functions and the struct of synheart_auth.h as they are.

    "$(Tests/Interop/environment)" Tests/CInterface/dart.py

No Dart SDK is to be had from Debian or PyPI, so its types are not checked.
"""
import pathlib
import re
import sys

from tree_sitter_language_pack import get_parser

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
# What a C type is in dart:ffi, with the example's names.
NATIVE = {
    "void": "Void", "int32_t": "Int32", "int64_t": "Int64", "double": "Double", "char*": "_Text", "char**": "_Result",
    "synheart_auth*": "_Handle", "synheart_auth**": "Pointer<_Handle>", "synheart_auth_host*": "Pointer<Void>",
    "synheart_auth_request*": "Pointer<_Request>", "uint8_t*": "Pointer<Uint8>", "uint8_t**": "Pointer<Pointer<Uint8>>",
    "int64_t*": "Pointer<Int64>",
}
DART = {"Void": "void", "Int32": "int", "Int64": "int", "Double": "double"}
# The desktop's own, and one that a process with a single instance does without.
NOT_BOUND = {
    "synheart_auth_create_with_software_keys", "synheart_auth_free", "synheart_auth_use_development_mode",
    "synheart_auth_http_answer_set", "synheart_auth_set_transport", "synheart_auth_set_observer", "synheart_auth_cancel",
}


def c_type(text):
    """The type of `const uint8_t *body`."""
    words, stars = re.fullmatch(r"(?:const )?(\w+) ?(\**)\w*", text.strip()).groups()
    return NATIVE[words + stars]


def functions(header):
    found = re.findall(r"^(void|int32_t) (synheart_auth_\w+)\(([^)]*)\);", header, re.MULTILINE)
    return {name: (NATIVE[result], [c_type(part) for part in parameters.split(",")]) for result, name, parameters in found
            if name not in NOT_BOUND}


def bindings(dart):
    """Name, native and Dart type of each lookup; one whose name is a parameter counts for each call of its method."""
    text = re.sub(r"\s+", " ", dart)
    lookup = r"lookupFunction< ?(\w+) Function\((.*?)\), ?(\w+) Function\((.*?)\) ?>\( ?('\w+'|name)\)"
    for match in re.finditer(lookup, text):
        native, own = [(match[i], [part.strip() for part in match[i + 1].split(",")]) for i in (1, 3)]
        if match[5] != "name":
            yield match[5].strip("'"), native, own
            continue
        method = re.findall(r" (_\w+)\(String name,", text[:match.start()])[-1]
        for name in re.findall(rf"{method}\( ?'(\w+)'", text):
            yield name, native, own


def syntax_errors(dart):
    # The grammar knows no external variables, which dart:ffi has for the fields of a struct.
    source = re.sub(r"\bexternal (?=\S+ \w+;)", "late ", dart).encode()

    def walk(node):
        if node.type == "ERROR" or node.is_missing:
            yield f"synheart_auth.dart:{node.start_point[0] + 1}: syntax: {source[node.start_byte:node.end_byte][:60]!r}"
        for child in node.children:
            yield from walk(child)

    return list(walk(get_parser("dart").parse(source).root_node))


def check(header, dart):
    findings = syntax_errors(dart)
    header = re.sub(r"/\*.*?\*/", "", header, flags=re.DOTALL)
    declared, bound = functions(header), list(bindings(dart))
    for name, native, own in bound:
        if native != declared.get(name):
            findings.append(f"{name}: bound as {native}, declared as {declared.get(name)}")
        if own != (DART.get(native[0], native[0]), [DART.get(kind, kind) for kind in native[1]]):
            findings.append(f"{name}: {native} is not {own} in Dart")
    for name in sorted(set(declared) - {name for name, _, _ in bound}):
        findings.append(f"{name} is not bound")
    wanted = re.search(r"typedef struct synheart_auth_request \{(.*?)\}", header, re.DOTALL)[1]
    wanted = [(c_type(field), field.split("*")[-1].split()[-1]) for field in wanted.split(";") if field.strip()]
    fields = re.search(r"class _Request extends Struct \{(.*?)\n\}", dart, re.DOTALL)[1]
    fields = re.findall(r"(?:@(\w+)\(\)\s+)?external (\S+) (\w+);", fields)
    fields = [(annotation or kind, re.sub("[A-Z]", lambda letter: "_" + letter[0].lower(), name))
              for annotation, kind, name in fields]
    if fields != wanted:
        findings.append(f"_Request is {fields}, synheart_auth_request {wanted}")
    return findings


header = (ROOT / "Sources/CSynheartAuth/include/synheart_auth.h").read_text()
dart = (ROOT / "Examples/flutter/synheart_auth.dart").read_text()
# Each rule has to find what is planted for it.
for old, new in [("Int64, _Result", "Int32, _Result"), ("_Text, Double", "_Text, Int64"), ("double, _Result", "int, _Result"),
                 ("'synheart_auth_sign'", "'synheart_auth_sing'"), ("external int deadlineMs", "external int deadline"),
                 ("@Int64()\n  external int bodyLength", "@Int32()\n  external int bodyLength"), ("sealed class", "sealed clas")]:
    if old not in dart or not check(header, dart.replace(old, new)):
        sys.exit(f"{new!r} was not found")
findings = check(header, dart)
print("\n".join(findings) or "ok")
sys.exit(1 if findings else 0)
