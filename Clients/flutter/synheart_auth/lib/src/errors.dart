import 'values.dart';

/// The error of every operation.
///
/// [code] is stable (RFC-AUTH-MOBILE-0001 section 11). Each of the SDK's own codes has its own class. Some of the
/// RFC's Dart classes cover several codes. The classes of these codes extend the RFC's class: [AttestationFailed]
/// extends [ServerError], and [KeystoreError] extends [StorageError]. So an exhaustive `switch` needs only the direct
/// subclasses.
sealed class SynheartAuthError implements Exception {
  const SynheartAuthError._(this.code, this.message, this.recovery, this.retryAfter, this.mayHaveHappened);

  /// The stable code, such as `NETWORK_ERROR`.
  final String code;

  /// An explanation for the developer. It holds no secret.
  final String message;

  /// The remedy for the app.
  final Recovery recovery;

  /// The time to wait before another attempt, if the service or the SDK knows it.
  final Duration? retryAfter;

  /// Whether the request of a `send` may have taken effect. False only if nothing was sent, or if the service refused the
  /// request before it took effect. If it is true, a second call may take effect a second time.
  final bool mayHaveHappened;

  /// Whether the same call may succeed later.
  bool get isRetryable => recovery == Recovery.retry;

  @override
  String toString() => '$code: $message';

  /// The error of a code from the platform channel. A code that is not the SDK's own becomes a [ServerError].
  static SynheartAuthError fromCode(String code, [String? message]) =>
      fromDetails(
        code,
        message: message,
        recovery: null,
        retryAfter: null,
        fromService: false,
        mayHaveHappened: false,
        from: null,
        to: null,
      );

  /// Creates the error for a code, with the details that the native half sent. A null message or recovery stands for
  /// the default of the code.
  static SynheartAuthError fromDetails(
    String code, {
    required String? message,
    required Recovery? recovery,
    required Duration? retryAfter,
    required bool fromService,
    required bool mayHaveHappened,
    required IdentityState? from,
    required IdentityState? to,
  }) {
    if (fromService) {
      return ServerError(code, message ?? _refused, recovery ?? _serviceRecovery(code), retryAfter, mayHaveHappened);
    }
    return switch (code) {
      'NETWORK_ERROR' => NetworkError(
        message ?? 'The auth service could not be asked.',
        recovery ?? Recovery.retry,
        retryAfter,
        mayHaveHappened,
      ),
      'CANCELLED' => CallCancelled(
        message ?? 'The caller cancelled.',
        recovery ?? Recovery.none,
        retryAfter,
        mayHaveHappened,
      ),
      'CHALLENGE_EXPIRED' => ChallengeExpired(
        message ?? 'The challenge expired.',
        recovery ?? Recovery.retry,
        retryAfter,
        mayHaveHappened,
      ),
      'ATTESTATION_UNAVAILABLE' => AttestationUnavailable(
        message ?? 'This device cannot attest.',
        recovery ?? Recovery.none,
        retryAfter,
        mayHaveHappened,
      ),
      'ATTESTATION_FAILED' => AttestationFailed(
        message ?? 'The attestation was refused.',
        recovery ?? Recovery.none,
        retryAfter,
        mayHaveHappened,
      ),
      'KEY_INVALIDATED' => KeyInvalidated(
        message ?? 'The hardware key is no longer usable.',
        recovery ?? Recovery.register,
        retryAfter,
        mayHaveHappened,
      ),
      'KEYSTORE_ERROR' => KeystoreError(
        message ?? 'The key store failed.',
        recovery ?? Recovery.none,
        retryAfter,
        mayHaveHappened,
      ),
      'SECURE_ENCLAVE_ERROR' => SecureEnclaveError(
        message ?? 'The Secure Enclave failed.',
        recovery ?? Recovery.none,
        retryAfter,
        mayHaveHappened,
      ),
      'SIGNING_FAILED' => SigningFailed(
        message ?? 'The request could not be signed.',
        recovery ?? Recovery.none,
        retryAfter,
        mayHaveHappened,
      ),
      'DEVICE_REVOKED' => DeviceRevoked(
        message ?? 'The service revoked this device.',
        recovery ?? Recovery.reset,
        retryAfter,
        mayHaveHappened,
      ),
      'CLOCK_SKEW' => ClockSkew(
        message ?? "The device's clock is off.",
        recovery ?? Recovery.retry,
        retryAfter,
        mayHaveHappened,
      ),
      'ROTATION_FAILED' => RotationFailed(
        message ?? 'The key was not rotated; the old one is active.',
        recovery ?? Recovery.retry,
        retryAfter,
        mayHaveHappened,
      ),
      'NONCE_REPLAY' => NonceReplay(
        message ?? 'The service has seen this nonce.',
        recovery ?? Recovery.retry,
        retryAfter,
        mayHaveHappened,
      ),
      'ALREADY_REGISTERED' => AlreadyRegistered(
        message ?? 'The device is registered.',
        recovery ?? Recovery.none,
        retryAfter,
        mayHaveHappened,
      ),
      'NOT_REGISTERED' => NotRegistered(
        message ?? 'The device is not registered.',
        recovery ?? Recovery.register,
        retryAfter,
        mayHaveHappened,
      ),
      'NOT_CONFIGURED' => NotConfigured(
        message ?? 'Call configure(baseUrl) first.',
        recovery ?? Recovery.configure,
        retryAfter,
        mayHaveHappened,
      ),
      'REGISTRATION_IN_PROGRESS' => RegistrationInProgress(
        message ?? 'A registration of this app is in progress.',
        recovery ?? Recovery.retry,
        retryAfter,
        mayHaveHappened,
      ),
      'CRYPTO_ERROR' => CryptoError(
        message ?? 'A cryptographic operation failed.',
        recovery ?? Recovery.none,
        retryAfter,
        mayHaveHappened,
      ),
      'STORAGE_ERROR' => StorageError(
        message ?? "The identity's record could not be read or written.",
        recovery ?? Recovery.none,
        retryAfter,
        mayHaveHappened,
      ),
      'ANSWER_TOO_LARGE' => AnswerTooLarge(
        message ?? 'The answer is too large; the request may have succeeded.',
        recovery ?? Recovery.none,
        retryAfter,
        mayHaveHappened,
      ),
      'INVALID_STATE_TRANSITION' => InvalidStateTransition(from, to, message ?? 'The state does not allow this.'),
      _ => ServerError(code, message ?? _refused, recovery ?? _serviceRecovery(code), retryAfter, mayHaveHappened),
    };
  }

  static const String _refused = 'The service refused.';

  static Recovery _serviceRecovery(String code) => switch (code) {
    'INVALID_CHALLENGE' || 'RATE_LIMITED' => Recovery.retry,
    'INVALID_SIGNATURE' || 'NOT_REGISTERED' => Recovery.reset,
    'KEY_EXPIRED' => Recovery.rotate,
    _ => Recovery.none,
  };
}

/// The name of the same class in Kotlin.
typedef SynheartAuthException = SynheartAuthError;

/// `NETWORK_ERROR`: the auth service could not be reached, or did not decide about the request. Try again later.
final class NetworkError extends SynheartAuthError {
  /// An error.
  const NetworkError([
    String message = 'The auth service could not be asked.',
    Recovery recovery = Recovery.retry,
    Duration? retryAfter,
    bool mayHaveHappened = false,
  ]) : super._('NETWORK_ERROR', message, recovery, retryAfter, mayHaveHappened);
}

/// `CANCELLED`: the caller cancelled its wait (`CallCancellation`). The operation continues.
final class CallCancelled extends SynheartAuthError {
  /// An error.
  const CallCancelled([
    String message = 'The caller cancelled.',
    Recovery recovery = Recovery.none,
    Duration? retryAfter,
    bool mayHaveHappened = false,
  ]) : super._('CANCELLED', message, recovery, retryAfter, mayHaveHappened);
}

/// `CHALLENGE_EXPIRED`: the challenge expired before the registration arrived. Try again.
final class ChallengeExpired extends SynheartAuthError {
  /// An error.
  const ChallengeExpired([
    String message = 'The challenge expired.',
    Recovery recovery = Recovery.retry,
    Duration? retryAfter,
    bool mayHaveHappened = false,
  ]) : super._('CHALLENGE_EXPIRED', message, recovery, retryAfter, mayHaveHappened);
}

/// `ATTESTATION_UNAVAILABLE`: this device or build cannot attest. Another call does not help.
final class AttestationUnavailable extends SynheartAuthError {
  /// An error.
  const AttestationUnavailable([
    String message = 'This device cannot attest.',
    Recovery recovery = Recovery.none,
    Duration? retryAfter,
    bool mayHaveHappened = false,
  ]) : super._('ATTESTATION_UNAVAILABLE', message, recovery, retryAfter, mayHaveHappened);
}

/// `ATTESTATION_FAILED`: the attestation was refused.
final class AttestationFailed extends ServerError {
  /// An error.
  const AttestationFailed([
    String message = 'The attestation was refused.',
    Recovery recovery = Recovery.none,
    Duration? retryAfter,
    bool mayHaveHappened = false,
  ]) : super('ATTESTATION_FAILED', message, recovery, retryAfter, mayHaveHappened);
}

/// `KEY_INVALIDATED`: the hardware key is no longer usable. The next `registerDevice` starts over.
final class KeyInvalidated extends SynheartAuthError {
  /// An error.
  const KeyInvalidated([
    String message = 'The hardware key is no longer usable.',
    Recovery recovery = Recovery.register,
    Duration? retryAfter,
    bool mayHaveHappened = false,
  ]) : super._('KEY_INVALIDATED', message, recovery, retryAfter, mayHaveHappened);
}

/// `KEYSTORE_ERROR`: the Android Keystore failed.
final class KeystoreError extends StorageError {
  /// An error.
  const KeystoreError([
    String message = 'The key store failed.',
    Recovery recovery = Recovery.none,
    Duration? retryAfter,
    bool mayHaveHappened = false,
  ]) : super._own('KEYSTORE_ERROR', message, recovery, retryAfter, mayHaveHappened);
}

/// `SECURE_ENCLAVE_ERROR`: the Secure Enclave failed.
final class SecureEnclaveError extends StorageError {
  /// An error.
  const SecureEnclaveError([
    String message = 'The Secure Enclave failed.',
    Recovery recovery = Recovery.none,
    Duration? retryAfter,
    bool mayHaveHappened = false,
  ]) : super._own('SECURE_ENCLAVE_ERROR', message, recovery, retryAfter, mayHaveHappened);
}

/// `SIGNING_FAILED`: the request could not be signed.
final class SigningFailed extends CryptoError {
  /// An error.
  const SigningFailed([
    String message = 'The request could not be signed.',
    Recovery recovery = Recovery.none,
    Duration? retryAfter,
    bool mayHaveHappened = false,
  ]) : super._own('SIGNING_FAILED', message, recovery, retryAfter, mayHaveHappened);
}

/// `DEVICE_REVOKED`: the service revoked this device. Revocation is permanent: `resetDeviceIdentity` makes room for a new identity.
final class DeviceRevoked extends ServerError {
  /// An error.
  const DeviceRevoked([
    String message = 'The service revoked this device.',
    Recovery recovery = Recovery.reset,
    Duration? retryAfter,
    bool mayHaveHappened = false,
  ]) : super('DEVICE_REVOKED', message, recovery, retryAfter, mayHaveHappened);
}

/// `CLOCK_SKEW`: the device's clock is off.
final class ClockSkew extends SynheartAuthError {
  /// An error.
  const ClockSkew([
    String message = "The device's clock is off.",
    Recovery recovery = Recovery.retry,
    Duration? retryAfter,
    bool mayHaveHappened = false,
  ]) : super._('CLOCK_SKEW', message, recovery, retryAfter, mayHaveHappened);
}

/// `ROTATION_FAILED`: the key was not rotated. The old one is active, unless the recovery is [Recovery.reset].
final class RotationFailed extends ServerError {
  /// An error.
  const RotationFailed([
    String message = 'The key was not rotated; the old one is active.',
    Recovery recovery = Recovery.retry,
    Duration? retryAfter,
    bool mayHaveHappened = false,
  ]) : super('ROTATION_FAILED', message, recovery, retryAfter, mayHaveHappened);
}

/// `NONCE_REPLAY`: the service accepted a copy of this request before, so its effect may have happened.
final class NonceReplay extends ServerError {
  /// An error.
  const NonceReplay([
    String message = 'The service has seen this nonce.',
    Recovery recovery = Recovery.retry,
    Duration? retryAfter,
    bool mayHaveHappened = false,
  ]) : super('NONCE_REPLAY', message, recovery, retryAfter, mayHaveHappened);
}

/// `ALREADY_REGISTERED`: the device is registered.
final class AlreadyRegistered extends SynheartAuthError {
  /// An error.
  const AlreadyRegistered([
    String message = 'The device is registered.',
    Recovery recovery = Recovery.none,
    Duration? retryAfter,
    bool mayHaveHappened = false,
  ]) : super._('ALREADY_REGISTERED', message, recovery, retryAfter, mayHaveHappened);
}

/// `NOT_REGISTERED`: the device is not registered. Call `registerDevice` first.
final class NotRegistered extends SynheartAuthError {
  /// An error.
  const NotRegistered([
    String message = 'The device is not registered.',
    Recovery recovery = Recovery.register,
    Duration? retryAfter,
    bool mayHaveHappened = false,
  ]) : super._('NOT_REGISTERED', message, recovery, retryAfter, mayHaveHappened);
}

/// `NOT_CONFIGURED`: `configure` was not called, or was given a wrong value.
final class NotConfigured extends SynheartAuthError {
  /// An error.
  const NotConfigured([
    String message = 'Call configure(baseUrl) first.',
    Recovery recovery = Recovery.configure,
    Duration? retryAfter,
    bool mayHaveHappened = false,
  ]) : super._('NOT_CONFIGURED', message, recovery, retryAfter, mayHaveHappened);
}

/// `REGISTRATION_IN_PROGRESS`: a registration of this app is in progress.
final class RegistrationInProgress extends SynheartAuthError {
  /// An error.
  const RegistrationInProgress([
    String message = 'A registration of this app is in progress.',
    Recovery recovery = Recovery.retry,
    Duration? retryAfter,
    bool mayHaveHappened = false,
  ]) : super._('REGISTRATION_IN_PROGRESS', message, recovery, retryAfter, mayHaveHappened);
}

/// `CRYPTO_ERROR`: a cryptographic operation failed.
final class CryptoError extends SynheartAuthError {
  /// An error.
  const CryptoError([
    String message = 'A cryptographic operation failed.',
    Recovery recovery = Recovery.none,
    Duration? retryAfter,
    bool mayHaveHappened = false,
  ]) : super._('CRYPTO_ERROR', message, recovery, retryAfter, mayHaveHappened);

  const CryptoError._own(super.code, super.message, super.recovery, super.retryAfter, super.mayHaveHappened)
    : super._();
}

/// `STORAGE_ERROR`: the identity's record could not be read or written.
final class StorageError extends SynheartAuthError {
  /// An error.
  const StorageError([
    String message = "The identity's record could not be read or written.",
    Recovery recovery = Recovery.none,
    Duration? retryAfter,
    bool mayHaveHappened = false,
  ]) : super._('STORAGE_ERROR', message, recovery, retryAfter, mayHaveHappened);

  const StorageError._own(super.code, super.message, super.recovery, super.retryAfter, super.mayHaveHappened)
    : super._();
}

/// `ANSWER_TOO_LARGE`: the answer is larger than the request allows. The request may have succeeded.
final class AnswerTooLarge extends ServerError {
  /// An error.
  const AnswerTooLarge([
    String message = 'The answer is too large; the request may have succeeded.',
    Recovery recovery = Recovery.none,
    Duration? retryAfter,
    bool mayHaveHappened = false,
  ]) : super('ANSWER_TOO_LARGE', message, recovery, retryAfter, mayHaveHappened);
}

/// `INVALID_STATE_TRANSITION`: the identity cannot change from [from] to [to]. The cause is a mistake in the program.
final class InvalidStateTransition extends SynheartAuthError {
  /// An error.
  const InvalidStateTransition(this.from, this.to, [String message = 'The state does not allow this.'])
    : super._('INVALID_STATE_TRANSITION', message, Recovery.none, null, false);

  /// The state before the refused change; null if the native half did not send it.
  final IdentityState? from;

  /// The state that was refused; null if the native half did not send it.
  final IdentityState? to;
}

/// An error whose code came from the service and has no class of its own in the SDK. Some of the SDK's own errors extend this class.
final class ServerError extends SynheartAuthError {
  /// An error.
  const ServerError(
    String code, [
    String message = 'The service refused.',
    Recovery recovery = Recovery.none,
    Duration? retryAfter,
    bool mayHaveHappened = false,
  ]) : super._(code, message, recovery, retryAfter, mayHaveHappened);

  /// The service's message. For one of the SDK's own codes, it is the SDK's message.
  String get serverMessage => message;
}
