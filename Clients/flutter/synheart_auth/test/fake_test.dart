import 'package:flutter_test/flutter_test.dart';
import 'package:synheart_auth/src/contract.dart' as contract;
import 'package:synheart_auth/synheart_auth.dart';
import 'package:synheart_auth/testing.dart';

void main() {
  test('the stand-in lives as a device does', () async {
    final FakeSynheartAuth auth = FakeSynheartAuth();
    await expectLater(auth.signRequest('app', 'GET', '/', const <int>[]), throwsA(isA<NotRegistered>()));
    expect((await auth.registerDevice('app')).status, equals(RegistrationStatus.registered));
    expect((await auth.registerDevice('app')).status, equals(RegistrationStatus.alreadyRegistered));
    expect(await auth.signRequest('app', 'GET', '/', const <int>[]), hasLength(6));
    expect((await auth.signRequest('app', 'GET', '/', const <int>[]))['X-App-ID'], equals('app'));
    expect((await auth.signRequest('app', 'GET', '/', const <int>[]))['X-Device-ID'], equals(FakeSynheartAuth.deviceId));
    auth.fail('send', const DeviceRevoked());
    await expectLater(auth.send('app', const AuthRequest('GET', 'https://a/')), throwsA(isA<DeviceRevoked>()));
    expect((await auth.send('app', const AuthRequest('GET', 'https://a/'))).status, equals(200));
    auth.enter('app', IdentityState.keyInvalid);
    await expectLater(auth.deviceToken('app'), throwsA(isA<KeyInvalidated>()));
    await auth.resetDeviceIdentity('app');
    expect(await auth.getState('app'), equals(IdentityState.unregistered));
    expect(auth.calls.last, equals('getState'));
  });

  test('the stand-in follows its script', () async {
    final FakeSynheartAuth auth = FakeSynheartAuth();
    auth.registrations.add(RegistrationStatus.pending);
    expect((await auth.registerDevice('app')).status, equals(RegistrationStatus.pending));
    expect(await auth.isRegistered('app'), isFalse);
    final CallCancellation cancellation = CallCancellation();
    cancellation.cancel();
    await expectLater(auth.maintain('app', cancellation: cancellation), throwsA(isA<CallCancelled>()));
  });

  test('each operation fails as its script says', () async {
    final FakeSynheartAuth auth = FakeSynheartAuth();
    auth.enter('app', IdentityState.registered);
    final Map<String, Future<Object?> Function()> operations = <String, Future<Object?> Function()>{
      'configure': () async => auth.configure('https://a'),
      'isRegistered': () async => auth.isRegistered('app'),
      'registerDevice': () async => auth.registerDevice('app'),
      'getDeviceId': () async => auth.getDeviceId('app'),
      'getState': () async => auth.getState('app'),
      'signRequest': () async => auth.signRequest('app', 'GET', '/', const <int>[]),
      'sign': () async => auth.sign('app', 'GET', 'https://a/', const <int>[]),
      'send': () async => auth.send('app', const AuthRequest('GET', 'https://a/')),
      'deviceToken': () async => auth.deviceToken('app'),
      'rotateKey': () async => auth.rotateKey('app'),
      'resetDeviceIdentity': () async => auth.resetDeviceIdentity('app'),
      'maintain': () async => auth.maintain('app'),
      'correctClockSkew': () async => auth.correctClockSkew(1),
    };
    // Every call of the contract except `cancel`, which only cancels the others.
    expect(operations.keys.toSet(), equals(contract.calls.keys.toSet()..removeAll(<String>['cancel'])));
    for (final String name in operations.keys) {
      auth.fail(name, const StorageError('why', Recovery.retry));
      await expectLater(operations[name]!(), throwsA(isA<StorageError>()));
      expect(auth.calls.last, equals(name));
    }
  });

  test('a second configuration with the same values changes nothing, another one is an error', () async {
    final FakeSynheartAuth auth = FakeSynheartAuth();
    await auth.configure('https://a', origins: <String>{'https://b', 'https://c'});
    await auth.configure('https://a', origins: <String>{'https://c', 'https://b'});
    await expectLater(auth.configure('https://a'), throwsA(isA<NotConfigured>()));
  });
}
