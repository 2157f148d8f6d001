"""Runs the part of Dart that the plugin and its tests use, on tree-sitter's syntax trees.

It is not a complete Dart: types matter only in `is`, `as`, `catch`, `isA` and patterns, and anything that the plugin does not use is an
error. It exists because neither Debian nor PyPI has a Dart SDK.
"""
import collections
import json

from dart_sources import Source

# Marks an absent value where null would be a value.
MISSING = object()
SKIPPED = {"documentation_comment", "comment", "annotation", "type_arguments", "const_builtin", "label"}


class Thrown(Exception):
    """A Dart object that was thrown."""

    def __init__(self, value):
        super().__init__()
        self.value = value


class Returned(Exception):
    def __init__(self, value):
        super().__init__()
        self.value = value


class Bytes(list):
    """A Uint8List."""


class DartSet(dict):
    """A Set: its elements are the keys."""


class Class:
    def __init__(self, name, library):
        self.name, self.library = name, library
        self.superclass, self.interfaces = None, []
        self.fields, self.methods, self.getters, self.statics, self.constructors = [], {}, {}, {}, {}
        self.values = None

    def ancestors(self):
        yield self
        for above in [self.superclass, *self.interfaces]:
            if above is not None:
                yield from above.ancestors()

    def find(self, table, name):
        owner = self
        while owner is not None:
            if name in getattr(owner, table):
                return getattr(owner, table)[name]
            owner = owner.superclass
        return None


class Instance:
    def __init__(self, kind):
        self.kind, self.fields = kind, {}

    def __eq__(self, other):
        if isinstance(other, Instance) and self.kind is other.kind and self.kind.name in ("Duration", "DateTime"):
            return self.fields == other.fields
        return self is other

    def __hash__(self):
        return id(self)


class Function:
    def __init__(self, interpreter, source, parameters, body, scope, name="", is_async=False):
        self.interpreter, self.source, self.parameters, self.body = interpreter, source, parameters, body
        self.scope, self.name, self.is_async = scope, name, is_async


class Parameter:
    def __init__(self, name, kind, default, role, is_required):
        self.name, self.kind, self.default, self.role, self.is_required = name, kind, default, role, is_required


class Scope:
    def __init__(self, parent=None, this=None, owner=None, library=None):
        self.parent, self.names = parent, {}
        self.this = this if this is not None or parent is None else parent.this
        self.owner = owner if owner is not None or parent is None else parent.owner
        self.library = library if library is not None or parent is None else parent.library

    def holder(self, name):
        scope = self
        while scope is not None:
            if name in scope.names:
                return scope.names
            scope = scope.parent
        return None


class Lazy:
    """A top-level or static variable that is not initialized yet."""

    def __init__(self, nodes, scope):
        self.nodes, self.scope = nodes, scope


class Future:
    def __init__(self, loop):
        self.loop, self.state, self.value, self.listeners = loop, None, None, []

    def complete(self, value):
        if isinstance(value, Future):
            return value.listen(self.complete, self.fail)
        self.settle("value", value)

    def fail(self, error):
        self.settle("error", error)

    def settle(self, state, value):
        if self.state is not None:
            raise Thrown("Bad state: Future already completed")
        self.state, self.value = state, value
        for listener in self.listeners:
            self.loop.soon(*listener[state], value)

    def listen(self, done, failed):
        if self.state is None:
            self.listeners.append({"value": (done,), "error": (failed,)})
        else:
            self.loop.soon(done if self.state == "value" else failed, self.value)

    def __await__(self):
        result = yield self
        return result


class Loop:
    """Dart's two queues: microtasks and events."""

    def __init__(self):
        self.microtasks, self.events = collections.deque(), collections.deque()

    def soon(self, task, *arguments):
        self.microtasks.append((task, arguments))

    def spawn(self, coroutine, future):
        """Runs a coroutine up to its first await now, and continues when the awaited value completes."""
        def step(value=None, error=None):
            try:
                awaited = coroutine.throw(error) if error is not None else coroutine.send(value)
            except StopIteration as end:
                return future.complete(end.value)
            except Thrown as thrown:
                return future.fail(thrown.value)
            awaited.listen(step, lambda thrown: step(None, Thrown(thrown)))
        step()
        return future

    def run(self, future):
        while future.state is None:
            queue = self.microtasks or self.events
            if not queue:
                raise RuntimeError("everything waits, and nothing is left to run")
            task, arguments = queue.popleft()
            task(*arguments)


def at_once(coroutine):
    """The result of a synchronous function, which never waits."""
    try:
        coroutine.send(None)
    except StopIteration as end:
        return end.value
    raise RuntimeError("a synchronous function waits")


class Stream:
    def __init__(self, loop, is_broadcast):
        self.loop, self.is_broadcast = loop, is_broadcast
        self.listeners, self.waiting = [], []
        self.on_listen = self.on_cancel = None
        self.is_closed = False

    def add(self, kind, value):
        if not self.listeners and not self.is_broadcast and not self.is_closed:
            self.waiting.append((kind, value))
        for listener in self.listeners:
            self.loop.soon(self.deliver, listener, kind, value)

    def deliver(self, listener, kind, value):
        if listener in self.listeners and listener[kind] is not None:
            listener[kind](value)

    def listen(self, data, error):
        listener = {"data": data, "error": error}
        self.listeners.append(listener)
        for kind, value in self.waiting:
            self.loop.soon(self.deliver, listener, kind, value)
        self.waiting = []
        if len(self.listeners) == 1 and self.on_listen:
            self.on_listen()
        return listener

    def cancel(self, listener):
        if listener in self.listeners:
            self.listeners.remove(listener)
        return self.on_cancel() if not self.listeners and self.on_cancel else None


class Native:
    """A native object: members by name, each a value or a Python function, which may be a coroutine function."""

    def __init__(self, kind, **members):
        self.kind, self.members = kind, members


class Interpreter:
    def __init__(self, natives):
        self.loop = Loop()
        self.world, self.libraries = {}, {}
        self.natives = natives(self)

    # Declarations

    def load(self, name, text, is_public=True):
        source = Source(name, text)
        if source.syntax_errors():
            raise SyntaxError(source.syntax_errors()[0])
        library = Scope(library=source)
        self.libraries[name] = library
        children = [child for child in source.root.children if child.type not in SKIPPED]
        for index, node in enumerate(children):
            if node.type == "class_definition":
                self.declare_class(source, node, library)
            elif node.type == "enum_declaration":
                self.declare_enum(source, node, library)
            elif node.type == "static_final_declaration_list":
                for declaration in node.named_children:
                    library.names[source.text(declaration.named_children[0])] = Lazy(declaration.children[2:], library)
            elif node.type == "function_signature":
                name_, parameters = self.signature(source, node)
                library.names[name_] = self.function(source, parameters, children[index + 1], library, name_)
            elif node.type == "type_alias":
                names = [source.text(part) for part in node.named_children]
                library.names[names[0]] = Lazy([node.named_children[1]], library)
        if is_public:
            self.world.update(library.names)
        return library

    def function(self, source, parameters, body, scope, name=""):
        is_async = any(child.type == "async" or source.text(child) == "async" for child in body.children)
        return Function(self, source, parameters, body, scope, name, is_async)

    def signature(self, source, node):
        name = source.text(node.child_by_field_name("name"))
        formal = next((part for part in node.named_children if part.type == "formal_parameter_list"), None)
        return name, self.parameters(source, formal) if formal else []

    def parameters(self, source, formal):
        found = []

        def add(children, kind):
            index = 0
            is_required = False
            while index < len(children):
                node = children[index]
                if source.text(node) == "required":
                    is_required = True
                if node.type == "formal_parameter":
                    role, inner = "plain", node
                    for part in node.named_children:
                        if part.type in ("constructor_param", "super_formal_parameter"):
                            role, inner = {"constructor_param": "this"}.get(part.type, "super"), part
                    name = node.child_by_field_name("name") or [p for p in source.walk(inner) if p.type == "identifier"][-1]
                    default = []
                    index += 1
                    if index < len(children) and source.text(children[index]) in ("=", ":"):
                        index += 1
                        while index < len(children) and source.text(children[index]) not in (",", "}", "]"):
                            default.append(children[index])
                            index += 1
                    required = is_required or source.text(node).startswith("required")
                    found.append(Parameter(source.text(name), kind, default, role, required))
                    is_required = False
                    continue
                if node.type == "optional_formal_parameters":
                    add(node.children, "named" if source.text(node).startswith("{") else "optional")
                index += 1
        add(formal.children, "positional")
        return found

    def declare_class(self, source, node, library):
        kind = Class(source.text(node.child_by_field_name("name")), library)
        library.names[kind.name] = kind
        above = node.child_by_field_name("superclass")
        kind.above = source.text(above.named_children[0]) if above else None
        kind.interface_names = [source.text(part) for child in node.named_children if child.type == "interfaces"
                                for part in child.named_children if part.type == "type_identifier"]
        self.declare_members(source, kind, node.child_by_field_name("body"), library)

    def declare_enum(self, source, node, library):
        kind = Class(source.text(node.child_by_field_name("name")), library)
        library.names[kind.name] = kind
        kind.above, kind.interface_names, kind.values = None, [], []
        body = node.child_by_field_name("body") or [part for part in node.named_children if part.type == "enum_body"][0]
        self.declare_members(source, kind, body, library)
        for constant in body.named_children:
            if constant.type == "enum_constant":
                arguments = [part for part in source.walk(constant) if part.type == "arguments"]
                positional, named = at_once(self.arguments(arguments[0], Scope(library))) if arguments else ([], {})
                value = at_once(self.construct(kind, "", positional, named))
                value.fields["name"] = source.text(constant.child_by_field_name("name"))
                kind.statics[value.fields["name"]] = value
                kind.values.append(value)
        kind.statics["values"] = kind.values

    def declare_members(self, source, kind, body, library):
        scope = Scope(library, owner=kind)
        children = [child for child in body.named_children if child.type not in SKIPPED]
        for index, member in enumerate(children):
            following = children[index + 1] if index + 1 < len(children) else None
            parts = {part.type: part for part in member.named_children}
            is_static = source.text(member).startswith("static")
            if member.type in ("method_signature", "declaration"):
                for type_ in ("constant_constructor_signature", "constructor_signature"):
                    if type_ in parts:
                        names = [source.text(part) for part in parts[type_].named_children if part.type == "identifier"]
                        formal = [part for part in parts[type_].named_children if part.type == "formal_parameter_list"][0]
                        kind.constructors[".".join(names[1:])] = (
                            self.parameters(source, formal), parts.get("initializers"), source)
                signature = parts.get("function_signature") or parts.get("getter_signature")
                if signature is not None and following is not None and following.type == "function_body":
                    name, parameters = self.signature(source, signature)
                    function = self.function(source, parameters, following, scope, name)
                    table = kind.statics if is_static else kind.getters if "getter_signature" in parts else kind.methods
                    table[name] = function
                for type_ in ("initialized_identifier_list", "static_final_declaration_list"):
                    for declared in parts[type_].named_children if type_ in parts else []:
                        name = source.text(declared.named_children[0])
                        nodes = declared.children[2:]
                        if is_static:
                            kind.statics[name] = Lazy(nodes, scope)
                        else:
                            kind.fields.append((name, nodes, "late" in source.text(member).split("=")[0].split()))

    def link(self):
        for library in self.libraries.values():
            for kind in library.names.values():
                if isinstance(kind, Class) and kind.superclass is None:
                    look = lambda name: library.names.get(name) or self.world.get(name)
                    kind.superclass = look(kind.above) if kind.above else None
                    kind.interfaces = [found for found in map(look, kind.interface_names) if found]

    # Names

    def lookup(self, name, scope):
        holder = scope.holder(name)
        library_names = self.library_of(scope).names
        if holder is not None and holder is not library_names:
            return self.forced(holder, name)
        if scope.this is not None:
            found = self.member(scope.this, name, missing=None)
            if found is not MISSING:
                return found
        if scope.owner is not None and name in scope.owner.statics:
            return self.forced(scope.owner.statics, name)
        for names in (library_names, self.world, self.natives):
            if name in names:
                return self.forced(names, name)
        if name.lower() in self.libraries:
            return self.libraries[name.lower()]
        raise NameError(f"{name} in {self.library_of(scope).library.path}")

    def library_of(self, scope):
        while scope.parent is not None:
            scope = scope.parent
        return scope

    def forced(self, names, name):
        value = names[name]
        if isinstance(value, Lazy):
            value = names[name] = at_once(self.evaluate(value.nodes, value.scope))
        return value

    def assign(self, name, value, scope):
        holder = scope.holder(name)
        if holder is not None:
            holder[name] = value
        elif scope.this is not None and self.has_field(scope.this, name):
            self.set_member(scope.this, name, value)
        else:
            raise NameError(name)

    def has_field(self, target, name):
        return isinstance(target, Instance) and name in target.fields

    def set_member(self, target, name, value):
        if isinstance(target, Native):
            return target.members["set " + name](value)
        target.fields[name] = value

    def member(self, target, name, missing=True):
        """A field, getter or bound method of a value."""
        if isinstance(target, Scope):
            return self.forced(target.names, name)
        if isinstance(target, Class):
            if name in target.statics:
                return self.forced(target.statics, name)
            if name in target.constructors:
                return lambda *positional, **named: self.construct(target, name, list(positional), named)
        if isinstance(target, Native) and name in target.members:
            return target.members[name]
        if isinstance(target, Instance):
            if name in target.fields:
                value = target.fields[name]
                if isinstance(value, Lazy):
                    value = target.fields[name] = at_once(self.evaluate(value.nodes, value.scope))
                return value
            getter = target.kind.find("getters", name)
            if getter is not None:
                return at_once(self.invoke(self.bound(getter, target), [], {}))
            method = target.kind.find("methods", name)
            if method is not None:
                return self.bound(method, target)
        found = self.natives["member"](target, name)
        if found is MISSING and missing:
            raise AttributeError(f"{type(target).__name__} has no {name}")
        return found

    def bound(self, function, this):
        scope = Scope(function.scope, this=this)
        return Function(self, function.source, function.parameters, function.body, scope, function.name, function.is_async)

    # Calls

    async def call(self, target, positional, named):
        if isinstance(target, Function):
            return await self.invoke(target, positional, named)
        if isinstance(target, Class):
            return await self.construct(target, "", positional, named)
        result = target(*positional, **named)
        return await result if hasattr(result, "send") else result

    def callback(self, target):
        """A Python function that calls a Dart function from outside the interpreter."""
        return lambda *arguments: at_once(self.call(target, list(arguments), {}))

    async def bind(self, function_scope, parameters, positional, named, into):
        positional = list(positional)
        named = dict(named)
        for parameter in parameters:
            if parameter.kind == "named":
                if parameter.name in named:
                    value = named.pop(parameter.name)
                elif parameter.is_required:
                    raise TypeError(f"{parameter.name} is required")
                else:
                    value = await self.default(parameter, function_scope)
            elif positional:
                value = positional.pop(0)
            elif parameter.kind == "positional":
                raise TypeError(f"{parameter.name} is missing")
            else:
                value = await self.default(parameter, function_scope)
            into(parameter, value)
        if positional or named:
            raise TypeError(f"too many arguments: {positional} {named}")

    async def default(self, parameter, scope):
        if parameter.default:
            return await self.evaluate(parameter.default, scope)
        # The default of a `super` parameter is in the superclass.
        return MISSING if parameter.role == "super" else None

    async def invoke(self, function, positional, named):
        scope = Scope(function.scope)
        await self.bind(function.scope, function.parameters, positional, named,
                        lambda parameter, value: scope.names.__setitem__(parameter.name, value))
        body = self.run_body(function.body, scope)
        if function.is_async:
            return self.loop.spawn(body, Future(self.loop))
        return await body

    async def run_body(self, body, scope):
        parts = [child for child in body.children if child.type not in SKIPPED]
        block = next((part for part in parts if part.type == "block"), None)
        if block is not None:
            try:
                await self.execute(block, scope)
            except Returned as returned:
                return returned.value
            return None
        texts = [self.source(scope).text(part) for part in parts]
        start = texts.index("=>") + 1
        return await self.evaluate([part for part in parts[start:] if part.type != ";"], scope)

    async def construct(self, kind, name, positional, named):
        return await self.initialize(Instance(kind), kind, name, positional, named)

    async def initialize(self, this, kind, name, positional, named):
        scope = Scope(kind.library, owner=kind)
        for field, nodes, is_late in kind.fields:
            if is_late and nodes:
                this.fields[field] = Lazy(nodes, Scope(kind.library, this=this, owner=kind))
            else:
                this.fields[field] = await self.evaluate(nodes, scope) if nodes else None
        parameters, initializers, source = kind.constructors.get(name, ([], None, None))
        forwarded, forwarded_named = [], {}

        def into(parameter, value):
            scope.names[parameter.name] = value
            if parameter.role == "this":
                this.fields[parameter.name] = value
            elif parameter.role == "super" and value is not MISSING:
                if parameter.kind == "named":
                    forwarded_named[parameter.name] = value
                else:
                    forwarded.append(value)
        await self.bind(scope, parameters, positional, named, into)
        above = ""
        for entry in initializers.named_children if initializers is not None else []:
            if source.text(entry).startswith("super"):
                names = [source.text(part) for part in entry.named_children if part.type == "identifier"]
                above = ".".join(names)
                arguments = [part for part in entry.named_children if part.type == "arguments"][0]
                more, more_named = await self.arguments(arguments, scope)
                forwarded += more
                forwarded_named |= more_named
                continue
            inner = entry.named_children[0] if entry.type == "initializer_list_entry" else entry
            parts = [part for part in inner.children if part.type not in SKIPPED]
            texts = [source.text(part) for part in parts]
            if "=" in texts:
                this.fields[texts[texts.index("=") - 1]] = await self.evaluate(parts[texts.index("=") + 1:], scope)
        if kind.superclass is not None:
            await self.initialize(this, kind.superclass, above, forwarded, forwarded_named)
        return this

    def source(self, scope):
        return self.library_of(scope).library

    async def arguments(self, node, scope):
        positional, named = [], {}
        for child in node.named_children:
            if child.type == "argument":
                positional.append(await self.evaluate(child.children, scope))
            elif child.type == "named_argument":
                label = self.source(scope).text(child.named_children[0]).rstrip(":").strip()
                named[label] = await self.evaluate(child.children[1:], scope)
        return positional, named

    # Statements

    async def execute(self, block, scope):
        inner = Scope(scope)
        for node in block.named_children:
            if node.type == "local_function_declaration":
                source = self.source(scope)
                lambda_ = node.named_children[0]
                name, parameters = self.signature(source, lambda_.named_children[0])
                inner.names[name] = self.function(source, parameters, lambda_.named_children[-1], inner, name)
        for node in block.named_children:
            await self.statement(node, inner)

    async def statement(self, node, scope):
        source = self.source(scope)
        kind = node.type
        if kind in SKIPPED or kind == "local_function_declaration":
            return
        if kind == "block":
            await self.execute(node, scope)
        elif kind == "expression_statement":
            await self.evaluate([child for child in node.children if child.type != ";"], scope)
        elif kind == "local_variable_declaration":
            definition = node.named_children[0]
            name = source.text(definition.child_by_field_name("name"))
            texts = [source.text(child) for child in definition.children]
            value = None
            if "=" in texts:
                value = await self.evaluate(definition.children[texts.index("=") + 1:], scope)
            scope.names[name] = value
        elif kind == "return_statement":
            nodes = [child for child in node.children[1:] if child.type != ";"]
            raise Returned(await self.evaluate(nodes, scope) if nodes else None)
        elif kind == "if_statement":
            texts = [source.text(child) for child in node.children]
            close = self.closing(node, source)
            if await self.evaluate(node.children[2:close], scope):
                await self.statement(node.children[close + 1], Scope(scope))
            elif "else" in texts:
                await self.statement(node.children[texts.index("else") + 1], Scope(scope))
        elif kind == "for_statement":
            parts = next(child for child in node.named_children if child.type == "for_loop_parts")
            async for inner in self.iterations(parts, scope):
                await self.statement(node.named_children[-1], inner)
        elif kind == "try_statement":
            await self.attempt(node, scope)
        elif kind == "switch_statement":
            value = await self.evaluate(node.named_children[0].named_children, scope)
            for case in node.named_children[1].named_children:
                if await self.matches(case.named_children[1], value, scope):
                    for statement in case.named_children[2:]:
                        await self.statement(statement, scope)
                    break
        else:
            raise NotImplementedError(kind)

    def closing(self, node, source):
        """The index of the parenthesis that closes a condition."""
        depth = 0
        for index, child in enumerate(node.children):
            text = source.text(child)
            depth += (text == "(") - (text == ")")
            if text == ")" and depth == 0:
                return index
        raise SyntaxError(source.text(node))

    async def iterations(self, parts, scope):
        source = self.source(scope)
        texts = [source.text(child) for child in parts.children]
        if "in" in texts:
            at = texts.index("in")
            for item in self.natives["iterate"](await self.evaluate(parts.children[at + 1:-1], scope)):
                inner = Scope(scope)
                inner.names[texts[at - 1]] = item
                yield inner
            return
        inner = Scope(scope)
        declaration, rest = parts.children[1], parts.children[2:-1]
        await self.statement(declaration, inner)
        semicolon = [source.text(child) for child in rest].index(";")
        while await self.evaluate(rest[:semicolon], inner):
            yield Scope(inner)
            await self.evaluate(rest[semicolon + 1:], inner)

    async def attempt(self, node, scope):
        source = self.source(scope)
        children = [child for child in node.children if child.type not in SKIPPED]
        final = next((child for child in children if child.type == "finally_clause"), None)
        try:
            try:
                await self.execute(children[1], scope)
            except Thrown as thrown:
                index, wanted, names = 2, None, []
                while index < len(children) and children[index].type != "finally_clause":
                    child = children[index]
                    text = source.text(child)
                    if child.type == "type_identifier":
                        wanted = text
                    elif child.type == "catch_clause":
                        names = [source.text(part) for part in source.walk(child) if part.type == "identifier"]
                    elif child.type == "block":
                        if wanted is None or self.is_a(thrown.value, wanted, scope):
                            inner = Scope(scope)
                            for name, value in zip(names, (thrown.value, None)):
                                inner.names[name] = value
                            await self.execute(child, inner)
                            break
                        wanted, names = None, []
                    index += 1
                else:
                    raise
        finally:
            if final is not None:
                await self.execute(final.named_children[0], scope)

    # Expressions

    async def evaluate(self, nodes, scope):
        nodes = [node for node in nodes if node.type not in SKIPPED]
        if not nodes:
            raise SyntaxError("an empty expression")
        first, source = nodes[0], self.source(scope)
        if len(nodes) == 1 or first.type not in ("identifier", "type_identifier", "this", "super"):
            value = await self.primary(first, scope)
            rest = nodes[1:]
        else:
            name, rest = source.text(first), nodes[1:]
            value = scope.this if first.type in ("this", "super") else self.lookup(name, scope)
            if name in ("isA", "cast"):
                types = [part for part in source.walk(rest[0]) if part.type == "type_arguments"]
                self.type_argument = source.text(types[0])[1:-1] if types else None
        for node in rest:
            if node.type == "cascade_section":
                selector, call = node.named_children
                method = self.member(value, source.text(selector))
                positional, named = await self.arguments(call.named_children[-1], scope)
                await self.call(method, positional, named)
                continue
            part = node.named_children[0] if node.type == "selector" and node.named_children else node
            if source.text(node) == "!":
                if value is None:
                    raise Thrown("a null check found null")
            elif part.type == "argument_part":
                found = next(child for child in part.named_children if child.type == "arguments")
                positional, named = await self.arguments(found, scope)
                value = await self.call(value, positional, named)
            elif part.type == "index_selector" or part.named_children[0].type == "index_selector":
                index = part if part.type == "index_selector" else part.named_children[0]
                value = self.natives["index"](value, await self.evaluate(index.named_children, scope))
            elif part.type in ("unconditional_assignable_selector", "conditional_assignable_selector"):
                if value is None and part.type.startswith("conditional"):
                    return None
                value = self.member(value, source.text(part.named_children[0]))
            else:
                raise NotImplementedError(f"{part.type}: {source.text(node)}")
        return value

    def split(self, node, kinds, source):
        """The operands and operators of a node."""
        groups, operators = [[]], []
        for child in node.children:
            if child.type in kinds or (not child.is_named and source.text(child) in kinds):
                operators.append(source.text(child))
                groups.append([])
            else:
                groups[-1].append(child)
        return groups, operators

    async def primary(self, node, scope):
        source = self.source(scope)
        kind, text = node.type, source.text(node)
        if kind in ("identifier", "type_identifier", "identifier_dollar_escaped"):
            return self.lookup(text, scope)
        if kind in ("decimal_integer_literal", "decimal_floating_point_literal"):
            return json.loads(text)
        if kind in ("true", "false", "null_literal"):
            return {"true": True, "false": False, "null": None}[text]
        if kind == "string_literal":
            return await self.string(node, scope)
        if kind == "this":
            return scope.this
        if kind == "parenthesized_expression":
            return await self.evaluate(node.children[1:-1], scope)
        if kind in ("list_literal", "set_or_map_literal"):
            return await self.collection(node, scope)
        if kind == "function_expression":
            formal = node.named_children[0]
            return self.function(source, self.parameters(source, formal), node.named_children[-1], scope)
        if kind in ("const_object_expression", "constructor_invocation"):
            names = [source.text(part) for part in node.named_children if part.type in ("identifier", "type_identifier")]
            target = self.lookup(names[0], scope)
            for name in names[1:]:
                target = self.member(target, name)
            positional, named = await self.arguments(node.named_children[-1], scope)
            return await self.call(target, positional, named)
        if kind == "postfix_expression":
            return await self.evaluate(node.children, scope)
        if kind == "unary_expression":
            if node.named_children[0].type == "await_expression":
                return await self.primary(node.named_children[0], scope)
            operator = source.text(node.children[0])
            value = await self.evaluate(node.children[1:], scope)
            return not value if operator == "!" else -value
        if kind == "await_expression":
            value = await self.evaluate(node.children[1:], scope)
            return await value if isinstance(value, Future) else value
        if kind == "throw_expression":
            raise Thrown(await self.evaluate(node.children[1:], scope))
        if kind == "conditional_expression":
            (condition, yes, no), _ = self.split(node, {"?", ":"}, source)
            return await self.evaluate(yes if await self.evaluate(condition, scope) else no, scope)
        if kind == "if_null_expression":
            groups, _ = self.split(node, {"??"}, source)
            for group in groups:
                value = await self.evaluate(group, scope)
                if value is not None:
                    break
            return value
        if kind in ("logical_and_expression", "logical_or_expression"):
            groups, _ = self.split(node, {"logical_and_operator", "logical_or_operator"}, source)
            for group in groups:
                value = await self.evaluate(group, scope)
                if value is (kind == "logical_or_expression"):
                    break
            return value
        if kind in ("equality_expression", "relational_expression", "additive_expression", "multiplicative_expression"):
            (left, right), (operator,) = self.split(node, {kind.replace("expression", "operator")}, source)
            return self.natives["operate"](operator, await self.evaluate(left, scope), await self.evaluate(right, scope))
        if kind == "type_test_expression":
            test = node.named_children[-1]
            wanted = "".join(source.text(part) for part in test.children[1:])
            result = self.is_a(await self.evaluate(node.children[:-1], scope), wanted, scope)
            return result != ("!" in source.text(test.children[0]))
        if kind == "type_cast_expression":
            wanted = "".join(source.text(part) for part in node.named_children[-1].children[1:])
            value = await self.evaluate(node.children[:-1], scope)
            if not self.is_a(value, wanted, scope):
                raise Thrown(f"type {type(value).__name__} is not {wanted}")
            return value
        if kind == "assignment_expression":
            return await self.assignment(node, scope)
        if kind == "switch_expression":
            value = await self.evaluate(node.named_children[0].named_children, scope)
            for case in node.named_children[1:]:
                texts = [source.text(child) for child in case.children]
                arrow = texts.index("=>")
                for pattern in case.children[:arrow]:
                    if pattern.type != "logical_or_operator" and await self.matches(pattern, value, scope):
                        return await self.evaluate(case.children[arrow + 1:], scope)
            raise Thrown("no case matches")
        raise NotImplementedError(f"{kind}: {text[:60]}")

    async def assignment(self, node, scope):
        source = self.source(scope)
        target, operator = node.children[0], source.text(node.children[1])
        parts = target.named_children
        if operator == "??=":
            present = await self.evaluate(parts, scope)
            if present is not None:
                return present
        value = await self.evaluate(node.children[2:], scope)
        if operator == "+=":
            value = await self.evaluate(parts, scope) + value
        if len(parts) == 1:
            self.assign(source.text(parts[0]), value, scope)
            return value
        holder = await self.evaluate(parts[:-1], scope)
        last = parts[-1].named_children[0] if parts[-1].type == "selector" else parts[-1]
        index = last if last.type == "index_selector" else last.named_children[0]
        if index.type == "index_selector":
            holder[await self.evaluate(index.named_children, scope)] = value
        else:
            self.set_member(holder, source.text(index), value)
        return value

    async def string(self, node, scope):
        source = self.source(scope)
        raw, at, text = source.bytes, node.start_byte + 1, b""
        for child in node.named_children:
            if child.type == "template_substitution":
                text += raw[at:child.start_byte]
                value = await self.evaluate(child.named_children, scope)
                text += self.natives["text"](value).encode()
                at = child.end_byte
        return (text + raw[at:node.end_byte - 1]).decode().replace("\\n", "\n")

    async def collection(self, node, scope):
        source = self.source(scope)
        is_list = node.type == "list_literal"
        types = next((source.text(child) for child in node.named_children if child.type == "type_arguments"), "")
        groups, group = [], []
        for child in node.children:
            text = source.text(child)
            if child.type in SKIPPED or (text in ("[", "]", "{", "}") and not child.is_named):
                continue
            if text == "," and not child.is_named:
                groups.append(group)
                group = []
            else:
                group.append(child)
        groups = [found for found in [*groups, group] if found]
        is_map = not is_list and (types.count(",") > 0 or not types and all(g[0].type in ("pair", "spread_element") for g in groups))
        result = [] if is_list else {} if is_map else DartSet()
        for found in groups:
            await self.element(found, result, scope)
        return result

    async def element(self, nodes, result, scope):
        source = self.source(scope)
        first = nodes[0]
        if first.type == "for_element":
            parts = next(child for child in first.named_children if child.type == "for_loop_parts")
            body = first.named_children[first.named_children.index(parts) + 1:]
            async for inner in self.iterations(parts, scope):
                await self.element(body, result, inner)
        elif first.type == "spread_element":
            value = await self.evaluate(first.children[1:], scope)
            result.update(value) if isinstance(result, dict) else result.extend(self.natives["iterate"](value))
        elif first.type == "pair":
            (key, value), _ = self.split(first, {":"}, source)
            result[await self.evaluate(key, scope)] = await self.evaluate(value, scope)
        else:
            value = await self.evaluate(nodes, scope)
            result.append(value) if isinstance(result, list) else result.__setitem__(value, True)

    # Types and patterns

    async def matches(self, pattern, value, scope):
        source = self.source(scope)
        if pattern.type == "object_pattern":
            return self.is_a(value, source.text(pattern.named_children[0]), scope)
        if source.text(pattern) == "_":
            return True
        return self.natives["operate"]("==", value, await self.evaluate(pattern.children, scope))

    def is_a(self, value, wanted, scope):
        wanted = wanted.strip()
        if wanted.endswith("?"):
            return value is None or self.is_a(value, wanted[:-1], scope)
        name, _, inner = wanted.partition("<")
        if name in ("dynamic", "void"):
            return True
        native = {"String": str, "bool": bool, "Uint8List": Bytes, "double": float, "Map": dict, "List": list, "Future": Future}
        if name == "Object":
            return value is not None
        if name == "int":
            return isinstance(value, int) and not isinstance(value, bool)
        if name in native:
            if name == "Map" and isinstance(value, DartSet):
                return False
            if not isinstance(value, native[name]):
                return False
            parts = inner.rstrip(">").split(",") if inner else []
            if name == "Map" and len(parts) == 2:
                return all(self.is_a(k, parts[0], scope) and self.is_a(v, parts[1], scope) for k, v in value.items())
            if name == "List" and parts:
                return all(self.is_a(item, parts[0], scope) for item in value)
            return True
        kind = self.lookup(name, scope)
        return isinstance(value, Instance) and isinstance(kind, Class) and kind in value.kind.ancestors()
