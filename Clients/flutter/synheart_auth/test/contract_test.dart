import 'dart:convert';
import 'dart:io';
import 'dart:typed_data';

import 'package:flutter_test/flutter_test.dart';
import 'package:synheart_auth/src/contract.dart' as contract;
import 'package:synheart_auth/src/shapes.dart';
import 'package:synheart_auth/synheart_auth.dart';

/// `contract/channel.json`.
final Map<String, Object?> file =
    jsonDecode(File('contract/channel.json').readAsStringSync()) as Map<String, Object?>;

/// The JSON object in member [name] of [from].
Map<String, Object?> part(Map<String, Object?> from, String name) => from[name] as Map<String, Object?>;

/// A shape of contract/channel.json, with each name of an enum or a message replaced by its definition.
Map<String, Object?> resolved(Map<String, Object?> shape) {
  final Map<String, Object?> result = <String, Object?>{'nullable': false, ...shape};
  switch (shape['type']) {
    case 'enum':
      result['of'] = part(file, 'enums')[shape['of']];
    case 'list':
      result['of'] = resolved(part(shape, 'of'));
    case 'message':
      result['of'] = fields(part(part(file, 'messages'), shape['of'] as String));
  }
  return result;
}

/// The fields of a message in contract/channel.json.
Map<String, Object?> fields(Map<String, Object?> shapes) => <String, Object?>{
  for (final String name in shapes.keys) name: resolved(shapes[name] as Map<String, Object?>),
};

/// The JSON object that contract/channel.json has for a shape of the plugin.
Map<String, Object?> described(Shape shape) => <String, Object?>{
  'nullable': shape.nullable,
  ...switch (shape) {
    Text() => <String, Object?>{'type': 'string', 'max': shape.max},
    Bytes() => <String, Object?>{'type': 'bytes', 'max': shape.max},
    Integer() => <String, Object?>{'type': 'integer', 'min': shape.min, 'max': shape.max},
    Number() => <String, Object?>{'type': 'number'},
    Flag() => <String, Object?>{'type': 'boolean'},
    Choice() => <String, Object?>{'type': 'enum', 'of': shape.values},
    Items() => <String, Object?>{'type': 'list', 'of': described(shape.item), 'max': shape.max},
    Message() => <String, Object?>{'type': 'message', 'of': describedFields(shape)},
  },
};

/// The JSON object that contract/channel.json has for the fields of a message of the plugin.
Map<String, Object?> describedFields(Message message) => <String, Object?>{
  for (final String name in message.fields.keys) name: described(message.fields[name]!),
};

void main() {
  final Map<String, Object?> methods = part(file, 'methods');
  final Map<String, Object?> errors = part(file, 'errors');

  test('the methods are those of the contract file', () {
    expect(contract.calls.keys.toSet(), equals(methods.keys.toSet()));
    for (final String name in contract.calls.keys) {
      final Call call = contract.calls[name]!;
      final Map<String, Object?> method = part(methods, name);
      expect(describedFields(call.arguments), equals(fields(part(method, 'arguments'))), reason: name);
      final Shape? result = call.result;
      if (result == null) {
        expect(method['result'], isNull, reason: name);
      } else {
        expect(described(result), equals(resolved(part(method, 'result'))), reason: name);
      }
    }
  });

  test('channels, event and error details are those of the contract file', () {
    expect(contract.callsChannel, equals(part(file, 'channels')['calls']));
    expect(contract.statesChannel, equals(part(file, 'channels')['states']));
    expect(contract.malformedCode, equals(errors['malformed']));
    expect(described(contract.stateChange), equals(resolved(part(file, 'events'))));
    expect(described(contract.errorDetails), equals(resolved(part(errors, 'details'))));
  });

  test('the enums have the texts of the contract file', () {
    final Map<String, Object?> enums = part(file, 'enums');
    expect([for (final IdentityState value in IdentityState.values) value.wire], equals(enums['IdentityState']));
    expect([for (final RegistrationStatus value in RegistrationStatus.values) value.wire], equals(enums['RegistrationStatus']));
    expect([for (final RotationReason value in RotationReason.values) value.wire], equals(enums['RotationReason']));
    expect([for (final ResetReason value in ResetReason.values) value.wire], equals(enums['ResetReason']));
    expect([for (final SignatureScheme value in SignatureScheme.values) value.wire], equals(enums['SignatureScheme']));
    expect([for (final AndroidProof value in AndroidProof.values) value.wire], equals(enums['AndroidProof']));
    expect([for (final Recovery value in Recovery.values) value.wire], equals(enums['Recovery']));
  });

  test('each code has its class, and the recovery of the contract file', () {
    for (final Object? row in <Object?>[errors['cancelled'], ...errors['codes'] as List<Object?>]) {
      final Map<String, Object?> wanted = row as Map<String, Object?>;
      final SynheartAuthError error = SynheartAuthError.fromCode(wanted['code'] as String, 'why');
      expect(error.runtimeType.toString(), equals(wanted['class']));
      expect(error.code, equals(wanted['code']));
      expect(error.message, equals('why'));
      expect(error.recovery.wire, equals(wanted['recovery']));
      expect(error.isRetryable, equals(wanted['recovery'] == 'retry'));
    }
  });

  test('a code of the service is a ServerError with its recovery', () {
    final Map<String, Object?> recoveries = part(errors, 'service_recoveries');
    for (final String code in recoveries.keys) {
      final SynheartAuthError error = SynheartAuthError.fromDetails(
        code,
        message: null,
        recovery: null,
        retryAfter: null,
        fromService: true,
        mayHaveHappened: false,
        from: null,
        to: null,
      );
      expect(error, isA<ServerError>());
      expect(error.recovery.wire, equals(recoveries[code]));
    }
    expect(SynheartAuthError.fromCode('ANYTHING_ELSE'), isA<ServerError>());
    expect(SynheartAuthError.fromCode('ANYTHING_ELSE').recovery, equals(Recovery.none));
  });

  test('the classes of the RFC hold their codes', () {
    expect(const KeystoreError(), isA<StorageError>());
    expect(const SecureEnclaveError(), isA<StorageError>());
    expect(const SigningFailed(), isA<CryptoError>());
    for (final SynheartAuthError error in const <SynheartAuthError>[
      AttestationFailed(),
      DeviceRevoked(),
      RotationFailed(),
      NonceReplay(),
      AnswerTooLarge(),
    ]) {
      expect(error, isA<ServerError>());
    }
  });

  test('a shape refuses what the contract does not allow', () {
    const Message message = Message({'a': Text(2), 'b': Integer(1, 3, nullable: true)});
    message.check(<Object?, Object?>{'a': 'xy', 'b': null}, 'm');
    for (final Object? wrong in <Object?>[
      null,
      'text',
      <Object?, Object?>{'a': 'xy'},
      <Object?, Object?>{'a': 'xy', 'c': null},
      <Object?, Object?>{'a': 'xyz', 'b': 1},
      <Object?, Object?>{'a': null, 'b': 1},
      <Object?, Object?>{'a': 'x', 'b': 4},
      <Object?, Object?>{'a': 'x', 'b': 1.0},
      <Object?, Object?>{'a': 'x', 'b': 1, 'c': 1},
    ]) {
      expect(() => message.check(wrong, 'm'), throwsA(isA<FormatException>()));
    }
    expect(() => const Bytes(2).check(Uint8List(3), 'b'), throwsA(isA<FormatException>()));
    expect(() => const Bytes(2).check(<int>[1], 'b'), throwsA(isA<FormatException>()));
    expect(() => const Number().check(double.nan, 'n'), throwsA(isA<FormatException>()));
    expect(() => const Number().check(1, 'n'), throwsA(isA<FormatException>()));
    expect(() => const Flag().check(1, 'f'), throwsA(isA<FormatException>()));
    expect(() => const Choice(<String>['x']).check('y', 'c'), throwsA(isA<FormatException>()));
    expect(() => const Items(Text(1), 1).check(<Object?>['a', 'b'], 'l'), throwsA(isA<FormatException>()));
    expect(() => const Items(Text(1), 2).check(<Object?>['a', 2], 'l'), throwsA(isA<FormatException>()));
  });
}
