"""Reads Dart with tree-sitter's grammar: syntax errors, declarations, calls and constant expressions."""
import pathlib

import tree_sitter_dart
from tree_sitter import Language, Parser

PARSER = Parser(Language(tree_sitter_dart.language()))
PARAMETER_LISTS = {"formal_parameter_list"}


class Source:
    """A parsed file."""

    def __init__(self, path, text):
        self.path, self.bytes = str(path), text.encode()
        self.root = PARSER.parse(self.bytes).root_node

    def text(self, node):
        return self.bytes[node.start_byte:node.end_byte].decode()

    def place(self, node):
        return f"{self.path}:{node.start_point[0] + 1}"

    def walk(self, node=None):
        """The node and everything below it, in order."""
        node = node or self.root
        yield node
        for child in node.children:
            yield from self.walk(child)

    def syntax_errors(self):
        return [f"{self.place(node)}: syntax: {self.text(node)[:60]!r}"
                for node in self.walk() if node.type == "ERROR" or node.is_missing]

    def classes(self):
        return {self.text(node.child_by_field_name("name")): Class(self, node)
                for node in self.walk() if node.type == "class_definition"}

    def enums(self):
        """For each enum, the first text among the constructor arguments of each constant, or None if there is none."""
        found = {}
        for node in self.walk():
            if node.type == "enum_declaration":
                constants = [child for child in self.walk(node) if child.type == "enum_constant"]
                found[self.text(node.child_by_field_name("name"))] = {
                    self.text(constant.child_by_field_name("name")):
                        string(next((self.text(part) for part in self.walk(constant) if part.type == "string_literal"), None))
                    for constant in constants}
        return found

    def constants(self):
        """The expression of each top-level constant, as a list of nodes: an expression may be a name and its selectors."""
        found = {}
        for node in self.root.children:
            if node.type == "static_final_declaration_list":
                for declaration in node.named_children:
                    name, *expression = declaration.named_children
                    found[self.text(name)] = expression
        return found

    def arguments(self, node):
        """The positional arguments and the named ones of an `arguments` node: lists of nodes."""
        positional = [child.named_children for child in node.named_children if child.type == "argument"]
        named = {}
        for child in node.named_children:
            if child.type == "named_argument":
                label, *value = child.named_children
                named[self.text(label).rstrip(":").strip()] = value
        return positional, named

    def calls(self, node=None):
        """Each call below a node: its place, the name before its arguments, and the `arguments` node."""
        for found in self.walk(node):
            if found.type != "arguments":
                continue
            holder = found.parent
            if holder.type == "initializer_list_entry":
                continue
            while holder.type in ("argument_part", "selector"):
                inner, holder = holder, holder.parent
                before = inner.prev_named_sibling
            if found.parent.type not in ("argument_part",):
                before = found.prev_named_sibling
            while before is not None and before.type == "type_arguments":
                before = before.prev_named_sibling
            if before is None:
                continue
            names = [part for part in self.walk(before) if part.type in ("identifier", "type_identifier")]
            if names and not [part for part in self.walk(before) if part.type == "arguments"]:
                yield found, self.text(names[-1]), found

    def pairs(self, node):
        """Key and value nodes of the map literals directly in a node."""
        return {string(self.text(pair.named_children[0])): pair.named_children[1:]
                for pair in node.named_children if pair.type == "pair"}

    def joined(self, nodes):
        return "".join(self.text(node) for node in nodes)


class Class:
    """A class declaration."""

    def __init__(self, source, node):
        self.source, self.node = source, node
        above = node.child_by_field_name("superclass")
        self.superclass = source.text(above.named_children[0]) if above and above.named_children else None
        self.body = node.child_by_field_name("body")

    def members(self):
        """Signature, parameters and body of each function and getter."""
        found, body = {}, None
        children = self.body.named_children
        for index, member in enumerate(children):
            for part in self.source.walk(member):
                if part.type in ("function_signature", "getter_signature"):
                    name = self.source.text(part.child_by_field_name("name"))
                    after = children[index + 1] if index + 1 < len(children) else None
                    body = after if after is not None and after.type == "function_body" else None
                    found.setdefault(name, (part, self.parameters(part), body))
                    break
                if part.type in ("function_body", "block"):
                    break
        return found

    def parameters(self, signature):
        """Type and kind of each parameter: positional, optional or named."""
        found = {}
        formal = next((child for child in signature.named_children if child.type in PARAMETER_LISTS), None)
        for parameter in (self.source.walk(formal) if formal else []):
            if parameter.type != "formal_parameter":
                continue
            name = parameter.child_by_field_name("name")
            if name is None or self.source.text(name) in found:
                continue
            kind = "positional"
            if parameter.parent.type == "optional_formal_parameters":
                kind = "named" if self.source.text(parameter.parent).startswith("{") else "optional"
            text = self.source.bytes[parameter.start_byte:name.start_byte].decode().strip()
            found[self.source.text(name)] = (text.removeprefix("required ").strip(), kind)
        return found


def string(literal):
    return literal[1:-1] if literal is not None else None


def load(folder):
    return {path.name: Source(path, path.read_text()) for path in sorted(pathlib.Path(folder).rglob("*.dart"))}
