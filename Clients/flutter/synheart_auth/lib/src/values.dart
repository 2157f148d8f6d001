import 'dart:typed_data';

/// The state of an identity.
enum IdentityState {
  /// This app has no device identity.
  unregistered('unregistered'),

  /// A challenge was fetched. The key comes next.
  challengeReceived('challengeReceived'),

  /// The key exists. The attestation comes next.
  keyReady('keyReady'),

  /// A registration or a rotation is running, or the service has not decided yet.
  registering('registering'),

  /// The identity is registered.
  registered('registered'),

  /// The key is lost, or the record is damaged. The next `registerDevice` starts over.
  keyInvalid('keyInvalid');

  const IdentityState(this.wire);

  /// The name on the channel and in records.
  final String wire;
}

/// A change of an identity's state.
final class StateChange {
  /// A change.
  const StateChange({required this.appId, required this.from, required this.to});

  /// The app.
  final String appId;

  /// The state before the change.
  final IdentityState from;

  /// The state after the change.
  final IdentityState to;

  @override
  String toString() => 'StateChange($appId: ${from.wire} -> ${to.wire})';
}

/// The status of a device after `registerDevice`.
enum RegistrationStatus {
  /// This call registered the device.
  registered('registered'),

  /// The device was registered before. Nothing was sent.
  alreadyRegistered('alreadyRegistered'),

  /// The service has not decided yet. Call `registerDevice` again later.
  pending('pending');

  const RegistrationStatus(this.wire);

  /// The name on the channel.
  final String wire;
}

/// The result of `registerDevice`.
final class Registration {
  /// A result.
  const Registration({required this.status, required this.deviceId});

  /// The status of the device.
  final RegistrationStatus status;

  /// The id that the service issued, a lower-case UUID.
  final String deviceId;

  @override
  String toString() => 'Registration(${status.wire}, $deviceId)';
}

/// The reason for a rotation of the key.
enum RotationReason {
  /// The key is old, or a rotation was requested. The previous key stays valid for a short overlap.
  scheduled('scheduled'),

  /// Another party may have the previous key. It stops being valid at once.
  compromise('compromise');

  const RotationReason(this.wire);

  /// The name on the channel.
  final String wire;
}

/// The result of `rotateKey`.
final class KeyRotation {
  /// A result.
  const KeyRotation({required this.deviceId, required this.effectiveAt});

  /// The device id, which does not change.
  final String deviceId;

  /// The time at which the new key became the current one, on the service's clock, in UTC.
  final DateTime effectiveAt;

  @override
  String toString() => 'KeyRotation($deviceId, $effectiveAt)';
}

/// The reason for a reset of an identity (RFC-AUTH-MOBILE-0001 section 9.3).
enum ResetReason {
  /// The service demands the reset, for example by `DEVICE_REVOKED`.
  serverInstructed('server_instructed'),

  /// The user asked for the reset, for example by signing out everywhere.
  userRequested('user_requested'),

  /// The key is lost and cannot be rotated.
  keyLost('key_lost');

  const ResetReason(this.wire);

  /// The name on the channel.
  final String wire;
}

/// A scheme for the signature of a request.
enum SignatureScheme {
  /// Six headers: `X-App-ID`, `X-Device-ID` and four `X-Synheart-…`. The signature covers method, path, time and body.
  one('one'),

  /// RFC 9421. The signature also covers URL scheme, host and query.
  two('two');

  const SignatureScheme(this.wire);

  /// The name on the channel.
  final String wire;
}

/// The choice of Google's proofs that an Android device sends. The app's policy on the service decides which proofs it accepts.
enum AndroidProof {
  /// A Play Integrity token. Keys are not attested.
  playIntegrity('playIntegrity'),

  /// The key's own attestation. The app needs no Play Integrity.
  keyAttestation('keyAttestation'),

  /// Both proofs. A device that cannot give both cannot register.
  both('both'),

  /// All proofs that the device can give; one suffices.
  either('either');

  const AndroidProof(this.wire);

  /// The name on the channel.
  final String wire;
}

/// The remedy for an error.
enum Recovery {
  /// Report the error to the developer.
  none('none'),

  /// Call again, after `retryAfter` if it is known.
  retry('retry'),

  /// Call `configure`, or correct its arguments.
  configure('configure'),

  /// Call `registerDevice`.
  register('register'),

  /// Call `rotateKey`.
  rotate('rotate'),

  /// If the app agrees to give up this identity, call `resetDeviceIdentity`, then `registerDevice`.
  reset('reset'),

  /// Ask the user to correct the device's clock. The SDK does not learn an offset of more than 24 hours.
  correctClock('correctClock');

  const Recovery(this.wire);

  /// The name on the channel.
  final String wire;
}

/// A short-lived token that names the device: a JWT of type `synheart-device+jwt`.
final class DeviceToken {
  /// A token.
  const DeviceToken({required this.token, required this.remaining});

  /// The JWT, a secret: until it expires, any holder can act as the device, unless the backend checks a signature too.
  final String token;

  /// The remaining life.
  final Duration remaining;

  /// Leaves out the token, because it is a secret.
  @override
  String toString() => 'DeviceToken(remaining: $remaining)';
}

/// A request for `send`.
final class AuthRequest {
  /// A request.
  const AuthRequest(
    this.method,
    this.url, {
    this.headers = const <String, String>{},
    this.body = const <int>[],
    this.timeout = const Duration(seconds: 30),
    this.maximumAnswer = 4194304,
  });

  /// The HTTP method.
  final String method;

  /// The absolute URL: the auth service's origin, or one of the configured origins.
  final String url;

  /// The headers, without those that the transport writes (`Host`, `Content-Length`, …) or the signature needs.
  final Map<String, String> headers;

  /// The body as sent: at most 16 MiB.
  final List<int> body;

  /// The limit of the whole call, recoveries included: 30 seconds unless given, at most 10 minutes.
  final Duration timeout;

  /// The maximum size of the answer's body in bytes: 4 MiB by default, at most 16 MiB. A larger answer is [AnswerTooLarge], although the
  /// request may have had its effect.
  final int maximumAnswer;
}

/// A header line.
final class Header {
  /// A line.
  const Header(this.name, this.value);

  /// The name of the header: on Android as received; on iOS in the spelling that the system chooses.
  final String name;

  /// The value.
  final String value;
}

/// An answer to `send`, whatever its status.
final class AuthAnswer {
  /// An answer.
  const AuthAnswer({required this.status, required this.headers, required this.body});

  /// The HTTP status.
  final int status;

  /// The header lines: in order on Android. iOS gives them in any order, and joins the lines of one name.
  final List<Header> headers;

  /// The body.
  final Uint8List body;

  /// The value of the first header of this name; null if there is none. The name's case does not matter.
  String? header(String name) {
    final String wanted = name.toLowerCase();
    for (final Header line in headers) {
      if (line.name.toLowerCase() == wanted) return line.value;
    }
    return null;
  }
}
