import 'package:flutter_test/flutter_test.dart';
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
    await expectLater(auth.maintain('app', cancellation: cancellation), throwsA(isA<NetworkError>()));
  });
}
