import 'dart:typed_data';

/// The required form of a value on the platform channel. `contract/channel.json` has the shapes of all messages.
///
/// A shape is strict: it refuses absent and unknown fields, other types, and values beyond a limit. Its errors name the place and
/// contain nothing of the value.
sealed class Shape {
  const Shape({this.nullable = false});

  /// Whether null is allowed.
  final bool nullable;

  /// The expected type and range, for errors.
  String get expectation;

  /// Checks a value that is not null.
  void checkPresent(Object value, String place);

  /// Throws a [FormatException] that names [place] unless [value] has this shape.
  void check(Object? value, String place) {
    if (value != null) {
      checkPresent(value, place);
    } else if (!nullable) {
      throw FormatException('$place: expected $expectation, found null');
    }
  }
}

/// A text of at most [max] UTF-16 code units.
final class Text extends Shape {
  const Text(this.max, {super.nullable});

  /// The maximum number of UTF-16 code units.
  final int max;

  @override
  String get expectation => 'a text of at most $max characters';

  @override
  void checkPresent(Object value, String place) {
    if (value is! String) throw wrong(this, value, place);
    if (value.length > max) throw FormatException('$place: expected $expectation, found ${value.length}');
  }
}

/// A `Uint8List` of at most [max] bytes.
final class Bytes extends Shape {
  const Bytes(this.max, {super.nullable});

  /// The maximum number of bytes.
  final int max;

  @override
  String get expectation => 'at most $max bytes';

  @override
  void checkPresent(Object value, String place) {
    if (value is! Uint8List) throw wrong(this, value, place);
    if (value.length > max) throw FormatException('$place: expected $expectation, found ${value.length}');
  }
}

/// A whole number between [min] and [max].
final class Integer extends Shape {
  const Integer(this.min, this.max, {super.nullable});

  /// The smallest value.
  final int min;

  /// The largest value.
  final int max;

  @override
  String get expectation => 'a whole number from $min to $max';

  @override
  void checkPresent(Object value, String place) {
    if (value is! int) throw wrong(this, value, place);
    if (value < min || value > max) throw FormatException('$place: expected $expectation');
  }
}

/// A finite number.
final class Number extends Shape {
  const Number({super.nullable});

  @override
  String get expectation => 'a finite number';

  @override
  void checkPresent(Object value, String place) {
    if (value is! double) throw wrong(this, value, place);
    if (!value.isFinite) throw FormatException('$place: expected $expectation');
  }
}

/// True or false.
final class Flag extends Shape {
  const Flag({super.nullable});

  @override
  String get expectation => 'true or false';

  @override
  void checkPresent(Object value, String place) {
    if (value is! bool) throw wrong(this, value, place);
  }
}

/// One text of a fixed list.
final class Choice extends Shape {
  const Choice(this.values, {super.nullable});

  /// The texts.
  final List<String> values;

  @override
  String get expectation => 'one of ${values.join(', ')}';

  @override
  void checkPresent(Object value, String place) {
    if (value is! String) throw wrong(this, value, place);
    if (!values.contains(value)) throw FormatException('$place: expected $expectation');
  }
}

/// A list of at most [max] values of one shape.
final class Items extends Shape {
  const Items(this.item, this.max, {super.nullable});

  /// The shape of each value.
  final Shape item;

  /// The maximum number of values.
  final int max;

  @override
  String get expectation => 'a list of at most $max';

  @override
  void checkPresent(Object value, String place) {
    if (value is! List<Object?>) throw wrong(this, value, place);
    if (value.length > max) throw FormatException('$place: expected $expectation, found ${value.length}');
    for (int index = 0; index < value.length; index += 1) {
      item.check(value[index], '$place[$index]');
    }
  }
}

/// A map with exactly these fields.
final class Message extends Shape {
  const Message(this.fields, {super.nullable});

  /// The shape of each field.
  final Map<String, Shape> fields;

  @override
  String get expectation => 'a message';

  @override
  void checkPresent(Object value, String place) {
    if (value is! Map<Object?, Object?>) throw wrong(this, value, place);
    for (final String name in fields.keys) {
      if (!value.containsKey(name)) throw FormatException('$place: the field $name is absent');
      fields[name]!.check(value[name], '$place.$name');
    }
    if (value.length != fields.length) {
      throw FormatException('$place: expected only the fields ${fields.keys.join(', ')}');
    }
  }
}

/// A method of the channel.
final class Call {
  const Call(this.arguments, this.result);

  /// The message that the method takes.
  final Message arguments;

  /// The method's result; null if it returns nothing.
  final Shape? result;
}

/// The error for a value that does not have the type of [shape].
FormatException wrong(Shape shape, Object value, String place) =>
    FormatException('$place: expected ${shape.expectation}, found ${value.runtimeType}');
