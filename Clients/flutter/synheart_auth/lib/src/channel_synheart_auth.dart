import 'dart:async';
import 'dart:math' show Random;
import 'dart:typed_data';
import 'dart:ui' show RootIsolateToken;

import 'package:flutter/foundation.dart' show kIsWeb;
import 'package:flutter/services.dart';

import 'call_cancellation.dart';
import 'channel_error.dart';
import 'contract.dart' as contract;
import 'errors.dart';
import 'shapes.dart';
import 'synheart_auth.dart';
import 'values.dart';

/// [SynheartAuth] over the platform channels.
final class ChannelSynheartAuth implements SynheartAuth {
  /// The plugin in this isolate. Tests set [isRootIsolate]. By default, `RootIsolateToken` decides.
  ChannelSynheartAuth({bool? isRootIsolate}) : _isRootIsolate = isRootIsolate ?? _hasRootToken;

  // On the web, reading the token throws.
  static bool get _hasRootToken => kIsWeb || RootIsolateToken.instance != null;

  /// Whether this is the root isolate. Flutter delivers events only there.
  final bool _isRootIsolate;

  final MethodChannel _calls = const MethodChannel(contract.callsChannel);
  final EventChannel _states = const EventChannel(contract.statesChannel);

  /// The latest id of a call that can be cancelled. Ids start at random, so that two isolates, or two runs of Dart (hot restart),
  /// under one engine use different ids.
  int _latestCall = Random().nextInt(4294967296) * 1048576;

  @override
  Future<void> configure(
    String baseUrl, {
    Set<String> origins = const <String>{},
    Set<String> aliases = const <String>{},
    SignatureScheme scheme = SignatureScheme.one,
    bool rotatesAutomatically = true,
    int? cloudProjectNumber,
    AndroidProof androidProof = AndroidProof.either,
    bool developmentMode = false,
  }) async {
    await _call('configure', <String, Object?>{
      'baseUrl': baseUrl,
      'origins': origins.toList(),
      'aliases': aliases.toList(),
      'scheme': scheme.wire,
      'rotatesAutomatically': rotatesAutomatically,
      'cloudProjectNumber': cloudProjectNumber,
      'androidProof': androidProof.wire,
      'developmentMode': developmentMode,
    });
  }

  @override
  Future<bool> isRegistered(String appId) async {
    final Object? result = await _call('isRegistered', <String, Object?>{'appId': appId});
    return result as bool;
  }

  @override
  Future<Registration> registerDevice(String appId, {bool joins = true, CallCancellation? cancellation}) async {
    final Object? result = await _cancellable('registerDevice', cancellation, <String, Object?>{
      'appId': appId,
      'joins': joins,
    });
    final Map<Object?, Object?> fields = result as Map<Object?, Object?>;
    return Registration(
      status: RegistrationStatus.values.firstWhere((RegistrationStatus status) => status.wire == fields['status']),
      deviceId: fields['deviceId'] as String,
    );
  }

  @override
  Future<String?> getDeviceId(String appId) async {
    final Object? result = await _call('getDeviceId', <String, Object?>{'appId': appId});
    return result as String?;
  }

  @override
  Future<IdentityState> getState(String appId) async =>
      _state(await _call('getState', <String, Object?>{'appId': appId}));

  @override
  Future<Map<String, String>> signRequest(
    String appId,
    String method,
    String path,
    List<int> bodyBytes, {
    SignatureScheme? scheme,
  }) async {
    final Object? result = await _call('signRequest', <String, Object?>{
      'appId': appId,
      'method': method,
      'path': path,
      'body': Uint8List.fromList(bodyBytes),
      'scheme': scheme?.wire,
    });
    return <String, String>{for (final Header line in _headers(result)) line.name: line.value};
  }

  @override
  Future<Map<String, String>> sign(
    String appId,
    String method,
    String url,
    List<int> bodyBytes, {
    SignatureScheme? scheme,
    bool asserting = false,
    CallCancellation? cancellation,
  }) async {
    final Object? result = await _cancellable('sign', cancellation, <String, Object?>{
      'appId': appId,
      'method': method,
      'url': url,
      'body': Uint8List.fromList(bodyBytes),
      'scheme': scheme?.wire,
      'asserting': asserting,
    });
    return <String, String>{for (final Header line in _headers(result)) line.name: line.value};
  }

  @override
  Future<AuthAnswer> send(
    String appId,
    AuthRequest request, {
    SignatureScheme? scheme,
    bool asserting = false,
    CallCancellation? cancellation,
  }) async {
    final Object? result = await _cancellable('send', cancellation, <String, Object?>{
      'appId': appId,
      'method': request.method,
      'url': request.url,
      'headers': <Object?>[
        for (final String name in request.headers.keys)
          <String, Object?>{'name': name, 'value': request.headers[name]},
      ],
      'body': Uint8List.fromList(request.body),
      'scheme': scheme?.wire,
      'asserting': asserting,
      'timeoutMs': request.timeout.inMilliseconds,
      'maximumAnswer': request.maximumAnswer,
    });
    final Map<Object?, Object?> fields = result as Map<Object?, Object?>;
    return AuthAnswer(
      status: fields['status'] as int,
      headers: _headers(fields['headers']),
      body: fields['body'] as Uint8List,
    );
  }

  @override
  Future<DeviceToken> deviceToken(String appId, {String? audience, CallCancellation? cancellation}) async {
    final Object? result = await _cancellable('deviceToken', cancellation, <String, Object?>{
      'appId': appId,
      'audience': audience,
    });
    final Map<Object?, Object?> fields = result as Map<Object?, Object?>;
    return DeviceToken(
      token: fields['token'] as String,
      remaining: Duration(milliseconds: fields['remainingMs'] as int),
    );
  }

  @override
  Future<KeyRotation> rotateKey(
    String appId, {
    RotationReason reason = RotationReason.scheduled,
    CallCancellation? cancellation,
  }) async {
    final Object? result = await _cancellable('rotateKey', cancellation, <String, Object?>{
      'appId': appId,
      'reason': reason.wire,
    });
    final Map<Object?, Object?> fields = result as Map<Object?, Object?>;
    return KeyRotation(
      deviceId: fields['deviceId'] as String,
      effectiveAt: DateTime.fromMillisecondsSinceEpoch((fields['effectiveAt'] as int) * 1000, isUtc: true),
    );
  }

  @override
  Future<void> resetDeviceIdentity(
    String appId, {
    ResetReason reason = ResetReason.userRequested,
    CallCancellation? cancellation,
  }) async {
    await _cancellable('resetDeviceIdentity', cancellation, <String, Object?>{'appId': appId, 'reason': reason.wire});
  }

  @override
  Future<void> maintain(String appId, {CallCancellation? cancellation}) async {
    await _cancellable('maintain', cancellation, <String, Object?>{'appId': appId});
  }

  @override
  Future<void> correctClockSkew(double serverTimestamp, {String? appId}) async {
    await _call('correctClockSkew', <String, Object?>{'serverTimestamp': serverTimestamp, 'appId': appId});
  }

  late final Stream<StateChange> _changes = _states.receiveBroadcastStream().map(_stateChange);

  static const NotConfigured _elsewhere = NotConfigured(
    'changes of state arrive in the root isolate alone: listen there',
    Recovery.none,
  );

  // Outside of the root isolate, each call returns a new stream: a shared stream would give the error only to its first listener.
  @override
  Stream<StateChange> get stateChanges =>
      _isRootIsolate ? _changes : Stream<StateChange>.error(_elsewhere).asBroadcastStream();

  @override
  Stream<IdentityState> states(String appId) {
    if (!_isRootIsolate) return Stream<IdentityState>.error(_elsewhere);
    final StreamController<IdentityState> controller = StreamController<IdentityState>();
    StreamSubscription<StateChange>? changes;
    IdentityState? latest;

    void add(IdentityState state) {
      if (latest == state) return;
      latest = state;
      controller.add(state);
    }

    controller.onListen = () {
      // Listen first, so that no change is lost. If a change arrives before the answer, ignore the answer: the change is
      // newer, or another change follows and corrects the state.
      changes = stateChanges.listen((StateChange change) {
        if (change.appId == appId) add(change.to);
      }, onError: controller.addError);
      getState(appId).then<void>(
        (IdentityState state) {
          if (latest == null) add(state);
        },
        onError: controller.addError,
      );
    };
    // The answer of `getState` may arrive after the listener has cancelled. The controller then drops it.
    controller.onCancel = () => changes?.cancel();
    return controller.stream;
  }

  /// Calls a method with an id that [cancellation] can cancel.
  Future<Object?> _cancellable(String method, CallCancellation? cancellation, Map<String, Object?> arguments) async {
    if (cancellation == null) return _call(method, <String, Object?>{'call': null, ...arguments});
    if (cancellation.isCancelled) throw const CallCancelled();
    _latestCall += 1;
    final int id = _latestCall;
    final Completer<Object?> cancelled = Completer<Object?>();
    void end() {
      // The request of a `send` may have been sent already.
      cancelled.completeError(method == 'send' ? _cancelledSend : const CallCancelled());
      // Best effort: the wait has ended, whatever the native half replies.
      _call('cancel', <String, Object?>{'call': id}).ignore();
    }

    cancellation.addListener(end);
    try {
      return await Future.any<Object?>(<Future<Object?>>[
        _call(method, <String, Object?>{'call': id, ...arguments}),
        cancelled.future,
      ]);
    } finally {
      cancellation.removeListener(end);
    }
  }

  /// Calls a method. Arguments and result have the contract's shapes.
  Future<Object?> _call(String method, Map<String, Object?> arguments) async {
    final Call call = contract.calls[method]!;
    try {
      call.arguments.check(arguments, method);
    } on FormatException catch (error) {
      throw ArgumentError(error.message);
    }
    final Object? result;
    try {
      result = await _calls.invokeMethod<Object?>(method, arguments);
    } on PlatformException catch (error) {
      throw _error(error);
    } on MissingPluginException {
      throw const NotConfigured(
        'this engine has no plugin: it runs on Android and iOS, and a host that makes an engine itself registers its plugins',
        Recovery.none,
      );
    } on StateError {
      if (_isRootIsolate) rethrow;
      throw const NotConfigured(
        'this isolate has no channel: call BackgroundIsolateBinaryMessenger.ensureInitialized(token) in it first',
        Recovery.none,
      );
    }
    final Shape? shape = call.result;
    if (shape != null) {
      _check(shape, result, method);
    } else if (result != null) {
      throw ChannelError('$method: expected no result');
    }
    return result;
  }

  static void _check(Shape shape, Object? value, String place) {
    try {
      shape.check(value, place);
    } on FormatException catch (error) {
      throw ChannelError(error.message);
    }
  }

  static Object _error(PlatformException error) {
    if (error.code == contract.malformedCode) return ChannelError(error.message ?? 'the message was refused');
    final Object? details = error.details;
    if (details == null) return SynheartAuthError.fromCode(error.code, error.message);
    try {
      contract.errorDetails.check(details, 'details');
    } on FormatException catch (found) {
      return ChannelError(found.message);
    }
    final Map<Object?, Object?> fields = details as Map<Object?, Object?>;
    final int? retryAfter = fields['retryAfterMs'] as int?;
    return SynheartAuthError.fromDetails(
      error.code,
      message: error.message,
      recovery: Recovery.values.firstWhere((Recovery recovery) => recovery.wire == fields['recovery']),
      retryAfter: retryAfter == null ? null : Duration(milliseconds: retryAfter),
      fromService: fields['fromService'] as bool,
      mayHaveHappened: fields['mayHaveHappened'] as bool,
      from: fields['from'] == null ? null : _state(fields['from']),
      to: fields['to'] == null ? null : _state(fields['to']),
    );
  }

  static StateChange _stateChange(Object? event) {
    _check(contract.stateChange, event, contract.statesChannel);
    final Map<Object?, Object?> fields = event as Map<Object?, Object?>;
    return StateChange(
      appId: fields['appId'] as String,
      from: _state(fields['from']),
      to: _state(fields['to']),
    );
  }

  static IdentityState _state(Object? wire) =>
      IdentityState.values.firstWhere((IdentityState state) => state.wire == wire);

  static List<Header> _headers(Object? lines) => <Header>[
    for (final Object? line in lines as List<Object?>)
      Header((line as Map<Object?, Object?>)['name'] as String, line['value'] as String),
  ];

  static const CallCancelled _cancelledSend = CallCancelled('The caller cancelled.', Recovery.none, null, true);
}
