import 'dart:async';
import 'dart:typed_data';

import 'call_cancellation.dart';
import 'errors.dart';
import 'synheart_auth.dart';
import 'values.dart';

/// A stand-in for the plugin in the tests of an app: identities in memory, scripted answers and failures.
///
/// Without a script every operation succeeds as it would on a phone: a device must register before it signs, a second
/// registration is `alreadyRegistered`, a reset ends the identity. No verifier accepts its signatures.
final class FakeSynheartAuth implements SynheartAuth {
  final Map<String, IdentityState> _identities = <String, IdentityState>{};
  final Map<String, List<SynheartAuthError>> _failures = <String, List<SynheartAuthError>>{};
  final StreamController<StateChange> _changes = StreamController<StateChange>.broadcast();
  int _rotations = 0;
  String? _configuration;

  /// The names of the operations that the app called, in order.
  final List<String> calls = <String>[];

  /// The results of the next registrations.
  final List<RegistrationStatus> registrations = <RegistrationStatus>[];

  /// The next answers to [send]. If the list is empty, [send] returns status 200 with an empty body.
  final List<AuthAnswer> answers = <AuthAnswer>[];

  /// The id of the device.
  static const String deviceId = '00000000-0000-4000-8000-000000000001';

  /// Makes the next call of an operation, such as `registerDevice`, throw [error].
  void fail(String operation, SynheartAuthError error) {
    final List<SynheartAuthError> failures = _failures[operation] ?? <SynheartAuthError>[];
    failures.add(error);
    _failures[operation] = failures;
  }

  /// Puts an identity into a state, as if an operation or the operating system had done it.
  void enter(String appId, IdentityState state) {
    final IdentityState from = _state(appId);
    _identities[appId] = state;
    if (from != state) _changes.add(StateChange(appId: appId, from: from, to: state));
  }

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
    _begin('configure');
    final String values = <Object?>[
      baseUrl,
      origins.toList()..sort(),
      aliases.toList()..sort(),
      scheme.wire,
      rotatesAutomatically,
      cloudProjectNumber,
      androidProof.wire,
      developmentMode,
    ].join(' ');
    _configuration ??= values;
    if (_configuration != values) throw const NotConfigured('configured already with other values', Recovery.none);
  }

  @override
  Future<bool> isRegistered(String appId) async {
    _begin('isRegistered');
    return _state(appId) == IdentityState.registered;
  }

  @override
  Future<Registration> registerDevice(String appId, {bool joins = true, CallCancellation? cancellation}) async {
    _begin('registerDevice', cancellation);
    RegistrationStatus status = RegistrationStatus.registered;
    if (registrations.isNotEmpty) {
      status = registrations.removeAt(0);
    } else if (_state(appId) == IdentityState.registered) {
      status = RegistrationStatus.alreadyRegistered;
    }
    enter(appId, status == RegistrationStatus.pending ? IdentityState.registering : IdentityState.registered);
    return Registration(status: status, deviceId: deviceId);
  }

  @override
  Future<String?> getDeviceId(String appId) async {
    _begin('getDeviceId');
    return _state(appId) == IdentityState.unregistered ? null : deviceId;
  }

  @override
  Future<IdentityState> getState(String appId) async {
    _begin('getState');
    return _state(appId);
  }

  @override
  Future<Map<String, String>> signRequest(
    String appId,
    String method,
    String path,
    List<int> bodyBytes, {
    SignatureScheme? scheme,
  }) async {
    _begin('signRequest');
    _needRegistered(appId);
    return <String, String>{
      'X-App-ID': appId,
      'X-Device-ID': deviceId,
      'X-Synheart-Signature': 'ZmFrZQ==',
      'X-Synheart-Timestamp': '1700000000',
      'X-Synheart-Nonce': '00000000-0000-4000-8000-000000000000',
      'X-Synheart-Sig-Version': '1',
    };
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
    _begin('sign', cancellation);
    _needRegistered(appId);
    return <String, String>{'Signature': 'synheart=:ZmFrZQ==:'};
  }

  @override
  Future<AuthAnswer> send(
    String appId,
    AuthRequest request, {
    SignatureScheme? scheme,
    bool asserting = false,
    CallCancellation? cancellation,
  }) async {
    _begin('send', cancellation);
    _needRegistered(appId);
    if (answers.isEmpty) return AuthAnswer(status: 200, headers: const <Header>[], body: Uint8List(0));
    return answers.removeAt(0);
  }

  @override
  Future<DeviceToken> deviceToken(String appId, {String? audience, CallCancellation? cancellation}) async {
    _begin('deviceToken', cancellation);
    _needRegistered(appId);
    return DeviceToken(token: 'fake.$deviceId.${audience ?? appId}', remaining: const Duration(minutes: 10));
  }

  @override
  Future<KeyRotation> rotateKey(
    String appId, {
    RotationReason reason = RotationReason.scheduled,
    CallCancellation? cancellation,
  }) async {
    _begin('rotateKey', cancellation);
    _needRegistered(appId);
    _rotations += 1;
    return KeyRotation(
      deviceId: deviceId,
      effectiveAt: DateTime.fromMillisecondsSinceEpoch((1700000000 + _rotations) * 1000, isUtc: true),
    );
  }

  @override
  Future<void> resetDeviceIdentity(
    String appId, {
    ResetReason reason = ResetReason.userRequested,
    CallCancellation? cancellation,
  }) async {
    _begin('resetDeviceIdentity', cancellation);
    enter(appId, IdentityState.unregistered);
  }

  @override
  Future<void> maintain(String appId, {CallCancellation? cancellation}) async {
    _begin('maintain', cancellation);
  }

  @override
  Future<void> correctClockSkew(double serverTimestamp, {String? appId}) async {
    _begin('correctClockSkew');
  }

  @override
  Stream<StateChange> get stateChanges => _changes.stream;

  @override
  Stream<IdentityState> states(String appId) async* {
    yield _state(appId);
    await for (final StateChange change in _changes.stream) {
      if (change.appId == appId) yield change.to;
    }
  }

  void _begin(String operation, [CallCancellation? cancellation]) {
    calls.add(operation);
    if (cancellation != null && cancellation.isCancelled) throw const CallCancelled();
    final List<SynheartAuthError>? failures = _failures[operation];
    if (failures != null && failures.isNotEmpty) throw failures.removeAt(0);
  }

  IdentityState _state(String appId) => _identities[appId] ?? IdentityState.unregistered;

  void _needRegistered(String appId) {
    if (_state(appId) == IdentityState.keyInvalid) throw const KeyInvalidated();
    if (_state(appId) != IdentityState.registered) throw const NotRegistered();
  }
}
