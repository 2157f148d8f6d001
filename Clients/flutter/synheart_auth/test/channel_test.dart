import 'dart:async';
import 'dart:typed_data';

import 'package:flutter/services.dart';
import 'package:flutter_test/flutter_test.dart';
import 'package:synheart_auth/src/channel_synheart_auth.dart';
import 'package:synheart_auth/src/contract.dart' as contract;
import 'package:synheart_auth/synheart_auth.dart';

const String device = '00000000-0000-4000-8000-000000000001';
const MethodChannel channel = MethodChannel(contract.callsChannel);

/// The details of an error, as the native half sends them.
Map<String, Object?> details(
  String recovery, {
  int? retryAfterMs,
  bool fromService = false,
  bool mayHaveHappened = false,
  String? from,
  String? to,
}) => <String, Object?>{
  'recovery': recovery,
  'retryAfterMs': retryAfterMs,
  'fromService': fromService,
  'mayHaveHappened': mayHaveHappened,
  'from': from,
  'to': to,
};

void main() {
  TestWidgetsFlutterBinding.ensureInitialized();
  final TestDefaultBinaryMessenger messenger = TestDefaultBinaryMessengerBinding.instance.defaultBinaryMessenger;
  late SynheartAuth auth;
  late List<MethodCall> calls;

  /// Makes the native half answer each call with [reply].
  void native(FutureOr<Object?> Function(MethodCall call) reply) {
    messenger.setMockMethodCallHandler(channel, (MethodCall call) async {
      calls.add(call);
      // Dart's messages have the contract's shape.
      contract.calls[call.method]!.arguments.check(call.arguments, call.method);
      return reply(call);
    });
  }

  setUp(() {
    auth = ChannelSynheartAuth();
    calls = <MethodCall>[];
    native((MethodCall call) => null);
  });

  tearDown(() => messenger.setMockMethodCallHandler(channel, null));

  test('configure sends every setting', () async {
    await auth.configure('https://auth.example.com');
    await auth.configure(
      'https://auth.example.com',
      origins: <String>{'https://api.example.com'},
      aliases: <String>{'https://old.example.com'},
      scheme: SignatureScheme.two,
      rotatesAutomatically: false,
      cloudProjectNumber: 5,
      androidProof: AndroidProof.both,
      developmentMode: true,
    );
    expect(calls[1].arguments, <String, Object?>{
      'baseUrl': 'https://auth.example.com',
      'origins': <String>['https://api.example.com'],
      'aliases': <String>['https://old.example.com'],
      'scheme': 'two',
      'rotatesAutomatically': false,
      'cloudProjectNumber': 5,
      'androidProof': 'both',
      'developmentMode': true,
    });
  });

  test('results arrive as values', () async {
    native((MethodCall call) => switch (call.method) {
      'isRegistered' => true,
      'registerDevice' => <String, Object?>{'status': 'pending', 'deviceId': device},
      'getDeviceId' => null,
      'getState' => 'keyInvalid',
      'signRequest' || 'sign' => <Object?>[
        <String, Object?>{'name': 'X-Synheart-Nonce', 'value': 'n'},
      ],
      'send' => <String, Object?>{
        'status': 404,
        'headers': <Object?>[
          <String, Object?>{'name': 'Content-Type', 'value': 'text/plain'},
        ],
        'body': Uint8List.fromList(<int>[1, 2]),
      },
      'deviceToken' => <String, Object?>{'token': 'a.b.c', 'remainingMs': 1500},
      'rotateKey' => <String, Object?>{'deviceId': device, 'effectiveAt': 1700000000},
      _ => null,
    });
    expect(await auth.isRegistered('app'), isTrue);
    final Registration registration = await auth.registerDevice('app');
    expect(registration.status, equals(RegistrationStatus.pending));
    expect(registration.deviceId, equals(device));
    expect(await auth.getDeviceId('app'), isNull);
    expect(await auth.getState('app'), equals(IdentityState.keyInvalid));
    expect(await auth.signRequest('app', 'GET', '/', const <int>[]), equals(<String, String>{'X-Synheart-Nonce': 'n'}));
    expect(await auth.sign('app', 'GET', 'https://a/', const <int>[]), equals(<String, String>{'X-Synheart-Nonce': 'n'}));
    final AuthAnswer answer = await auth.send('app', const AuthRequest('GET', 'https://a/'));
    expect(answer.status, equals(404));
    expect(answer.header('content-type'), equals('text/plain'));
    expect(answer.header('other'), isNull);
    expect(answer.body, equals(<int>[1, 2]));
    final DeviceToken token = await auth.deviceToken('app', audience: 'x');
    expect(token.token, equals('a.b.c'));
    expect(token.remaining, equals(const Duration(milliseconds: 1500)));
    expect(token.toString(), equals('DeviceToken(remaining: 0:00:01.500000)'));
    final KeyRotation rotation = await auth.rotateKey('app', reason: RotationReason.compromise);
    expect(rotation.effectiveAt, equals(DateTime.fromMillisecondsSinceEpoch(1700000000000, isUtc: true)));
    await auth.resetDeviceIdentity('app');
    await auth.maintain('app');
    await auth.correctClockSkew(1.5);
    expect(calls.map((MethodCall call) => call.method).toSet(), equals(contract.calls.keys.toSet()..removeAll(<String>['configure', 'cancel'])));
  });

  test('arguments are sent as they are', () async {
    native((MethodCall call) => call.method == 'send'
        ? <String, Object?>{'status': 200, 'headers': <Object?>[], 'body': Uint8List(0)}
        : null);
    await auth.send(
      'app',
      const AuthRequest(
        'POST',
        'https://a/b?c',
        headers: <String, String>{'A': 'b'},
        body: <int>[9],
        timeout: Duration(milliseconds: 1500),
        maximumAnswer: 7,
      ),
      scheme: SignatureScheme.two,
      asserting: true,
    );
    expect(calls.last.arguments, <String, Object?>{
      'call': null,
      'appId': 'app',
      'method': 'POST',
      'url': 'https://a/b?c',
      'headers': <Object?>[
        <String, Object?>{'name': 'A', 'value': 'b'},
      ],
      'body': Uint8List.fromList(<int>[9]),
      'scheme': 'two',
      'asserting': true,
      'timeoutMs': 1500,
      'maximumAnswer': 7,
    });
    await auth.resetDeviceIdentity('app', reason: ResetReason.keyLost);
    expect(calls.last.arguments, <String, Object?>{'call': null, 'appId': 'app', 'reason': 'key_lost'});
  });

  test('an argument beyond its limit is an ArgumentError and is not sent', () async {
    await expectLater(auth.isRegistered('x' * 129), throwsA(isA<ArgumentError>()));
    await expectLater(auth.correctClockSkew(double.nan), throwsA(isA<ArgumentError>()));
    await expectLater(
      auth.send('app', const AuthRequest('GET', 'https://a/', timeout: Duration(minutes: 11))),
      throwsA(isA<ArgumentError>()),
    );
    expect(calls, isEmpty);
  });

  test('an error arrives as its class, with its details', () async {
    native((MethodCall call) => throw PlatformException(
      code: 'NETWORK_ERROR',
      message: 'why',
      details: details('retry', retryAfterMs: 2500),
    ));
    await expectLater(
      auth.registerDevice('app'),
      throwsA(isA<NetworkError>()
          .having((NetworkError error) => error.message, 'message', 'why')
          .having((NetworkError error) => error.retryAfter, 'retryAfter', const Duration(milliseconds: 2500))),
    );
  });

  test('an invalid transition names both states', () async {
    native((MethodCall call) => throw PlatformException(
      code: 'INVALID_STATE_TRANSITION',
      details: details('none', from: 'registered', to: 'keyReady'),
    ));
    await expectLater(
      auth.maintain('app'),
      throwsA(isA<InvalidStateTransition>()
          .having((InvalidStateTransition error) => error.from, 'from', IdentityState.registered)
          .having((InvalidStateTransition error) => error.to, 'to', IdentityState.keyReady)),
    );
  });

  test("the service's NOT_REGISTERED is not the local one", () async {
    native((MethodCall call) => throw PlatformException(code: 'NOT_REGISTERED', details: details('reset', fromService: true)));
    await expectLater(auth.rotateKey('app'), throwsA(isA<ServerError>()));
    native((MethodCall call) => throw PlatformException(code: 'NOT_REGISTERED', details: details('register')));
    await expectLater(auth.rotateKey('app'), throwsA(isA<NotRegistered>()));
  });

  test('a native half that breaks the contract is a ChannelError', () async {
    for (final Object? wrong in <Object?>[
      null,
      'text',
      <String, Object?>{'status': 'registered'},
      <String, Object?>{'status': 'unknown', 'deviceId': device},
      <String, Object?>{'status': 'registered', 'deviceId': device, 'more': 1},
    ]) {
      native((MethodCall call) => wrong);
      await expectLater(auth.registerDevice('app'), throwsA(isA<ChannelError>()));
    }
    native((MethodCall call) => throw PlatformException(code: contract.malformedCode, message: 'why'));
    await expectLater(auth.isRegistered('app'), throwsA(isA<ChannelError>()));
    native((MethodCall call) => throw PlatformException(code: 'NETWORK_ERROR', details: 'text'));
    await expectLater(auth.isRegistered('app'), throwsA(isA<ChannelError>()));
  });

  test('a platform without an implementation is NOT_CONFIGURED', () async {
    messenger.setMockMethodCallHandler(channel, null);
    await expectLater(auth.isRegistered('app'), throwsA(isA<NotConfigured>()));
  });

  test('a cancelled call ends at once, and the native half hears of it', () async {
    final Completer<Object?> never = Completer<Object?>();
    native((MethodCall call) => call.method == 'cancel' ? null : never.future);
    final CallCancellation cancellation = CallCancellation();
    final Future<Registration> first = auth.registerDevice('app', cancellation: cancellation);
    final Future<void> second = auth.maintain('app', cancellation: cancellation);
    final Future<void> both = Future.wait(<Future<void>>[
      expectLater(first, throwsA(isA<CallCancelled>())),
      expectLater(second, throwsA(isA<CallCancelled>())),
    ]);
    await pumpEventQueue();
    cancellation.cancel();
    cancellation.cancel();
    await both;
    await pumpEventQueue();
    final List<Object?> ids = <Object?>[
      for (final MethodCall call in calls.sublist(0, 2)) (call.arguments as Map<Object?, Object?>)['call'],
    ];
    expect(ids.toSet(), hasLength(2));
    expect(
      <Object?>[for (final MethodCall call in calls.sublist(2)) call.arguments],
      equals(<Object?>[for (final Object? id in ids) <String, Object?>{'call': id}]),
    );
    await expectLater(auth.maintain('app', cancellation: cancellation), throwsA(isA<CallCancelled>()));
    expect(calls, hasLength(4));
  });

  test('a request that was cancelled on its way may have happened, one that was cancelled before did not', () async {
    final Completer<Object?> never = Completer<Object?>();
    native((MethodCall call) => call.method == 'cancel' ? null : never.future);
    final CallCancellation cancellation = CallCancellation();
    Matcher happened(bool value) => throwsA(
      isA<CallCancelled>().having((CallCancelled error) => error.mayHaveHappened, 'mayHaveHappened', value),
    );
    final Future<AuthAnswer> sent = auth.send('app', const AuthRequest('POST', 'https://a/'), cancellation: cancellation);
    final Future<void> seen = expectLater(sent, happened(true));
    await pumpEventQueue();
    cancellation.cancel();
    await seen;
    await expectLater(
      auth.send('app', const AuthRequest('POST', 'https://a/'), cancellation: cancellation),
      happened(false),
    );
  });

  test('an error says whether the request may have happened', () async {
    for (final bool value in <bool>[true, false]) {
      for (final bool fromService in <bool>[true, false]) {
        native((MethodCall call) => throw PlatformException(
          code: 'NONCE_REPLAY',
          details: details('retry', fromService: fromService, mayHaveHappened: value),
        ));
        await expectLater(
          auth.send('app', const AuthRequest('POST', 'https://a/')),
          throwsA(isA<ServerError>().having((ServerError error) => error.mayHaveHappened, 'mayHaveHappened', value)),
        );
      }
    }
  });

  test("two isolates of one engine do not cancel each other's calls", () async {
    final List<int> ids = <int>[];
    for (final SynheartAuth isolate in <SynheartAuth>[auth, ChannelSynheartAuth(isRootIsolate: false)]) {
      await isolate.maintain('app', cancellation: CallCancellation());
      ids.add((calls.last.arguments as Map<Object?, Object?>)['call'] as int);
    }
    final int difference = ids[0] - ids[1];
    expect(difference > 1000000 || difference < -1000000, isTrue);
  });

  test('changes of state arrive in the root isolate alone, and another one hears so', () async {
    native((MethodCall call) => 'registered');
    final SynheartAuth other = ChannelSynheartAuth(isRootIsolate: false);
    // Each listener gets the error `NotConfigured`, not only the first listener.
    for (int attempt = 0; attempt < 2; attempt += 1) {
      final List<Object> seen = <Object>[];
      final StreamSubscription<IdentityState> states = other.states('app').listen(seen.add, onError: seen.add);
      final StreamSubscription<StateChange> changes = other.stateChanges.listen(seen.add, onError: seen.add);
      await pumpEventQueue();
      await states.cancel();
      await changes.cancel();
      expect(seen, hasLength(2));
      expect(seen[0], isA<NotConfigured>());
      expect(seen[1], isA<NotConfigured>());
    }
  });

  test('a call that ended is not cancelled any more', () async {
    final CallCancellation cancellation = CallCancellation();
    await auth.maintain('app', cancellation: cancellation);
    cancellation.cancel();
    await pumpEventQueue();
    expect(calls, hasLength(1));
  });

  test('changes of state arrive as values', () async {
    const EventChannel states = EventChannel(contract.statesChannel);
    MockStreamHandlerEventSink? sink;
    messenger.setMockStreamHandler(
      states,
      MockStreamHandler.inline(onListen: (Object? arguments, MockStreamHandlerEventSink events) => sink = events),
    );
    native((MethodCall call) => 'unregistered');
    final List<IdentityState> seen = <IdentityState>[];
    final StreamSubscription<IdentityState> subscription = auth.states('app').listen(seen.add);
    await pumpEventQueue();
    void change(String app, String from, String to) =>
        sink!.success(<String, Object?>{'appId': app, 'from': from, 'to': to});
    change('other', 'registered', 'keyInvalid');
    change('app', 'unregistered', 'challengeReceived');
    change('app', 'challengeReceived', 'keyReady');
    await pumpEventQueue();
    expect(seen, equals(<IdentityState>[IdentityState.unregistered, IdentityState.challengeReceived, IdentityState.keyReady]));
    await subscription.cancel();
    messenger.setMockStreamHandler(states, null);
  });
}
