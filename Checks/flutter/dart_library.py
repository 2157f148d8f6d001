"""The parts of Dart's libraries, Flutter's channels and flutter_test that the plugin and its tests use."""
import json
import math
import pathlib
import random
import time

from dart_interpreter import MISSING, Bytes, Class, DartSet, Function, Future, Instance, Native, Stream, Thrown

# Classes that are easier to write in Dart.
PRELUDE = """
class Exception { const Exception(); }
class Error { const Error(); }
class FormatException implements Exception { const FormatException(this.message); final String message; }
class ArgumentError extends Error { ArgumentError(this.message); final Object? message; }
class StateError extends Error { StateError(this.message); final String message; }
class PlatformException implements Exception {
  PlatformException({required this.code, this.message, this.details});
  final String code;
  final String? message;
  final Object? details;
}
class MissingPluginException implements Exception { MissingPluginException(this.message); final String? message; }
class MethodCall { const MethodCall(this.method, this.arguments); final String method; final Object? arguments; }
"""


class Matcher:
    def __init__(self, text, matches):
        self.text, self.matches = text, matches


def natives(interpreter):
    loop = interpreter.loop
    messenger = {"methods": {}, "streams": {}}
    tests, hooks = [], {"setUp": [], "tearDown": []}

    def dart(name, *positional, **named):
        return drive(interpreter.construct(interpreter.world[name], "", list(positional), named))

    def drive(coroutine):
        try:
            coroutine.send(None)
        except StopIteration as end:
            return end.value
        raise RuntimeError("a synchronous function waits")

    # Values

    def duration(microseconds):
        value = Instance(duration_class)
        value.fields = {"microseconds": microseconds}
        return value

    duration_class, time_class = Class("Duration", None), Class("DateTime", None)

    def moment(milliseconds, isUtc=False):
        value = Instance(time_class)
        value.fields = {"milliseconds": milliseconds, "isUtc": isUtc}
        return value

    def text(value):
        if value is None or isinstance(value, bool):
            return {None: "null", True: "true", False: "false"}[value]
        if isinstance(value, Instance):
            if value.kind is duration_class:
                micro = value.fields["microseconds"]
                seconds, micro = divmod(micro, 1_000_000)
                return f"{seconds // 3600}:{seconds // 60 % 60:02}:{seconds % 60:02}.{micro:06}"
            method = value.kind.find("methods", "toString")
            if method is not None:
                return drive(interpreter.invoke(interpreter.bound(method, value), [], {}))
            return f"Instance of '{value.kind.name}'"
        if isinstance(value, Class):
            return value.name
        return str(value)

    def type_name(value):
        names = {str: "String", bool: "bool", int: "int", float: "double", Bytes: "Uint8List", list: "List", dict: "Map"}
        return value.kind if isinstance(value, Instance) else named_type(names.get(type(value), "Object"))

    def named_type(name):
        return Class(name, None)

    def same(left, right):
        if isinstance(left, bool) or isinstance(right, bool):
            return left is right
        if isinstance(left, (list, dict)):
            return left is right
        return left == right

    def operate(operator, left, right):
        if operator in ("==", "!="):
            return same(left, right) == (operator == "==")
        return {"+": lambda: left + right, "*": lambda: left * right, "<": lambda: left < right, ">": lambda: left > right,
                "<=": lambda: left <= right, ">=": lambda: left >= right, "-": lambda: left - right}[operator]()

    def index(target, key):
        return target.get(key) if isinstance(target, dict) else target[key]

    def iterate(value):
        return list(value.keys()) if isinstance(value, dict) else list(value)

    def fail(error):
        raise Thrown(error)

    def listed(target):
        call = interpreter.callback

        def first_where(test):
            return next((item for item in target if call(test)(item)), None) or fail(dart("StateError", "No element"))
        return {
            "length": len(target), "isEmpty": not target, "isNotEmpty": bool(target),
            "add": lambda item: target.append(item), "clear": lambda: target.clear(), "last": target[-1] if target else None,
            "contains": lambda item: item in target, "toList": lambda: type(target)(target),
            "toSet": lambda: DartSet((item, True) for item in target), "removeAt": lambda at: target.pop(at), "sort": lambda: target.sort(),
            "remove": lambda item: target.remove(item) if item in target else None,
            "join": lambda separator: separator.join(map(text, target)), "sublist": lambda start, end=None: target[start:end],
            "map": lambda function: [call(function)(item) for item in target], "firstWhere": first_where,
        }

    def mapped(target):
        if isinstance(target, DartSet):
            return {"toList": lambda: list(target), "length": len(target),
                    "removeAll": lambda items: [target.pop(item, None) for item in items] and None}
        return {"keys": list(target), "values": list(target.values()), "length": len(target),
                "containsKey": lambda key: key in target}

    def of_future(target):
        def then(done, onError=None):
            result = Future(loop)

            def run(callback, value):
                async def body():
                    return await interpreter.call(callback, [value], {})
                loop.spawn(body(), result)

            def failed(error):
                if onError is None:
                    return result.fail(error)

                async def body():
                    count = sum(p.kind == "positional" for p in onError.parameters) if isinstance(onError, Function) else 1
                    return await interpreter.call(onError, [error, None][:max(count, 1)], {})
                loop.spawn(body(), result)
            target.listen(lambda value: run(done, value), failed)
            return result
        return {"then": then, "ignore": lambda: None}

    def of_stream(target):
        def listen(data, onError=None):
            errors = interpreter.callback(onError) if onError is not None else None
            listener = target.listen(interpreter.callback(data), errors)

            def cancel():
                done = target.cancel(listener)
                if isinstance(done, Future):
                    return done
                future = Future(loop)
                future.complete(None)
                return future
            return Native("StreamSubscription", cancel=cancel)

        def mapped_stream(function):
            result = Stream(loop, target.is_broadcast)
            state = {}

            def forward(value):
                try:
                    result.add("data", interpreter.callback(function)(value))
                except Thrown as thrown:
                    result.add("error", thrown.value)
            result.on_listen = lambda: state.update(it=target.listen(forward, lambda error: result.add("error", error)))
            result.on_cancel = lambda: target.cancel(state["it"])
            return result
        return {"listen": listen, "map": mapped_stream, "asBroadcastStream": lambda: target}

    def member(target, name):
        if name == "runtimeType":
            return type_name(target)
        if name == "toString":
            return lambda: text(target)
        table = {}
        if isinstance(target, str):
            table = {"length": len(target.encode("utf-16-le")) // 2, "toLowerCase": target.lower, "isEmpty": not target}
        elif isinstance(target, list):
            table = listed(target)
        elif isinstance(target, dict):
            table = mapped(target)
        elif isinstance(target, Future):
            table = of_future(target)
        elif isinstance(target, Stream):
            table = of_stream(target)
        elif isinstance(target, float):
            table = {"isFinite": math.isfinite(target)}
        elif isinstance(target, Matcher):
            table = vars(target)
        elif isinstance(target, Instance) and target.kind is duration_class:
            table = {"inMilliseconds": target.fields["microseconds"] // 1000}
        elif isinstance(target, Instance) and target.kind is time_class:
            table = {"microsecondsSinceEpoch": int(target.fields["milliseconds"] * 1000)}
        return table.get(name, MISSING)

    # Futures and streams

    def completer():
        future = Future(loop)
        return Native("Completer", future=future, complete=lambda value=None: future.complete(value),
                      completeError=lambda error, trace=None: future.fail(error))

    def any_of(futures):
        result = Future(loop)
        for future in futures:
            future.listen(lambda value: result.state or result.complete(value), lambda error: result.state or result.fail(error))
        return result

    def wait(futures):
        result, values = Future(loop), {}

        def done(at, value):
            values[at] = value
            if len(values) == len(futures) and not result.state:
                result.complete([values[place] for place in range(len(futures))])
        for at, future in enumerate(futures):
            future.listen(lambda value, at=at: done(at, value), lambda error: result.state or result.fail(error))
        return result

    def controller(is_broadcast=False):
        stream = Stream(loop, is_broadcast)

        def set_on_cancel(callback):
            stream.on_cancel = interpreter.callback(callback)

        def set_on_listen(callback):
            stream.on_listen = interpreter.callback(callback)
        return Native("StreamController", stream=stream, add=lambda value: stream.add("data", value),
                      addError=lambda error, trace=None: stream.add("error", error),
                      **{"set onListen": set_on_listen, "set onCancel": set_on_cancel})

    def failed_stream(error):
        stream, errors = Stream(loop, True), [error]
        # Only the first listener gets the error.
        stream.on_listen = lambda: errors and stream.add("error", errors.pop())
        return stream

    # Flutter's channels

    def through_codec(value):
        """A message as the other side receives it: copied, and only types of the standard codec."""
        if value is None or isinstance(value, (bool, int, float, str)):
            return value
        if isinstance(value, Bytes):
            return Bytes(value)
        if isinstance(value, DartSet) or not isinstance(value, (list, dict)):
            return fail(dart("ArgumentError", f"the codec has no {text(value)}"))
        if isinstance(value, list):
            return [through_codec(item) for item in value]
        return {through_codec(key): through_codec(item) for key, item in value.items()}

    def method_channel(name):
        async def invoke(method, arguments=None):
            handler = messenger["methods"].get(name)
            if handler is None:
                fail(dart("MissingPluginException", method))
            await tick()
            try:
                result = await interpreter.call(handler, [dart("MethodCall", method, through_codec(arguments))], {})
                return through_codec(await result if isinstance(result, Future) else result)
            except Thrown as thrown:
                error = thrown.value
                if isinstance(error, Instance) and error.kind.name == "PlatformException":
                    fields = error.fields
                    fail(dart("PlatformException", code=fields["code"], message=fields["message"],
                              details=through_codec(fields["details"])))
                fail(dart("PlatformException", code="error", message=text(error)))
        return Native("MethodChannel", name=name,
                      invokeMethod=lambda method, arguments=None: loop.spawn(invoke(method, arguments), Future(loop)))

    def event_channel(name):
        stream = Stream(loop, True)
        sink = Native("EventSink", success=lambda event: stream.add("data", through_codec(event)))
        stream.on_listen = lambda: messenger["streams"][name](None, sink)
        return Native("EventChannel", name=name, receiveBroadcastStream=lambda: stream)

    async def tick():
        future = Future(loop)
        loop.events.append((future.complete, (None,)))
        await future

    # flutter_test

    def matcher(value):
        if isinstance(value, Matcher):
            return value
        return Matcher(f"equals {text(value)}", lambda found: deep(found, value))

    def deep(left, right):
        if isinstance(left, DartSet) and isinstance(right, DartSet):
            return set(left) == set(right)
        if isinstance(left, list) and isinstance(right, list):
            return len(left) == len(right) and all(map(deep, left, right))
        if isinstance(left, dict) and isinstance(right, dict):
            return left.keys() == right.keys() and all(deep(left[key], right[key]) for key in left)
        return same(left, right)

    def is_a():
        wanted = interpreter.type_argument

        def checked(checks):
            def matches(found):
                return interpreter.is_a(found, wanted, interpreter.current) and all(
                    matcher(value).matches(interpreter.callback(feature)(found)) for feature, value in checks)
            result = Matcher(f"a {wanted}", matches)
            result.having = lambda feature, description, value: checked([*checks, (feature, value)])
            return result
        return checked([])

    async def expect_later(actual, wanted):
        wanted = matcher(wanted)
        if getattr(wanted, "is_throws", False):
            try:
                if isinstance(actual, Future):
                    value = await actual
                else:
                    value = await interpreter.call(actual, [], {})
            except Thrown as thrown:
                if not wanted.inner.matches(thrown.value):
                    raise AssertionError(f"expected {wanted.text}, threw {text(thrown.value)}") from None
                return
            raise AssertionError(f"expected {wanted.text}, found {text(value)}")
        if not wanted.matches(actual):
            raise AssertionError(f"expected {wanted.text}, found {text(actual)}")

    def throws(inner):
        result = Matcher(f"throws {matcher(inner).text}", None)
        result.is_throws, result.inner = True, matcher(inner)
        return result

    def expect(actual, wanted, reason=None):
        if getattr(wanted, "is_throws", False):
            return drive(expect_later(actual, wanted))
        if not matcher(wanted).matches(actual):
            raise AssertionError(f"{reason or ''} expected {matcher(wanted).text}, found {text(actual)}")
        return None

    async def pump():
        for _ in range(20):
            await tick()

    binding = Native(
        "TestDefaultBinaryMessenger",
        setMockMethodCallHandler=lambda channel, handler: messenger["methods"].update({channel.members["name"]: handler}),
        setMockStreamHandler=lambda channel, handler: messenger["streams"].update({channel.members["name"]: handler}))

    table = {
        "member": member, "operate": operate, "index": index, "iterate": iterate, "text": text,
        "Duration": lambda minutes=0, seconds=0, milliseconds=0: duration(
            ((minutes * 60 + seconds) * 1000 + milliseconds) * 1000),
        "DateTime": Native("DateTime", now=lambda: moment(time.time() * 1000), fromMillisecondsSinceEpoch=moment),
        "Completer": completer, "Future": Native("Future", any=any_of, wait=wait),
        "Stream": Native("Stream", error=failed_stream), "Random": lambda: Native("Random", nextInt=random.randrange),
        "kIsWeb": False, "RootIsolateToken": Native("RootIsolateToken", instance=Native("RootIsolateToken")),
        "StreamController": Callable(controller, broadcast=lambda: controller(True)),
        "Uint8List": Callable(lambda length: Bytes([0] * length), fromList=lambda items: Bytes(items)),
        "MethodChannel": method_channel, "EventChannel": event_channel,
        "double": Native("double", nan=math.nan, infinity=math.inf),
        "jsonDecode": json.loads, "File": lambda path: Native("File", readAsStringSync=lambda: pathlib.Path(path).read_text()),
        "TestWidgetsFlutterBinding": Native("binding", ensureInitialized=lambda: None),
        "TestDefaultBinaryMessengerBinding": Native("binding", instance=Native("binding", defaultBinaryMessenger=binding)),
        "MockStreamHandler": Native("MockStreamHandler", inline=lambda onListen: interpreter.callback(onListen)),
        "test": lambda name, body: tests.append((name, body)), "setUp": lambda body: hooks["setUp"].append(body),
        "tearDown": lambda body: hooks["tearDown"].append(body), "expect": expect,
        "expectLater": lambda actual, wanted: loop.spawn(expect_later(actual, wanted), Future(loop)),
        "pumpEventQueue": lambda: loop.spawn(pump(), Future(loop)), "equals": matcher, "isA": is_a, "throwsA": throws,
        "isTrue": Matcher("true", lambda found: found is True), "isFalse": Matcher("false", lambda found: found is False),
        "isNull": Matcher("null", lambda found: found is None), "isEmpty": Matcher("empty", lambda found: not found),
        "hasLength": lambda length: Matcher(f"length {length}", lambda found: len(found) == length),
        "tests": tests, "hooks": hooks, "messenger": messenger,
    }
    return table


class Callable(Native):
    """A class with a plain constructor and named ones."""

    def __init__(self, create, **members):
        super().__init__("class", **members)
        self.create = create

    def __call__(self, *positional, **named):
        return self.create(*positional, **named)
