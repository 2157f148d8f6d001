// The Dart facade over the C interface: sealed errors, one class for each of the taxonomy.
import 'dart:convert';
import 'dart:ffi';
import 'dart:isolate';

import 'package:ffi/ffi.dart';

sealed class SynheartAuthError implements Exception {
  const SynheartAuthError(this.code, this.message, this.recovery, this.retryable);
  final String code, message, recovery;
  final bool retryable;

  /// The class of a code: the contract between the facades. `className` is what the C interface says beside it.
  static SynheartAuthError fromJson(Map<String, dynamic> json) {
    final code = json['code'] as String, message = json['message'] as String? ?? '';
    final recovery = json['recovery'] as String? ?? 'none', retryable = json['retryable'] as bool? ?? false;
    return switch (json['class'] as String?) {
      'NetworkError' => NetworkError(code, message, recovery, retryable),
      'ChallengeExpired' => ChallengeExpired(code, message, recovery, retryable),
      'AttestationUnavailable' => AttestationUnavailable(code, message, recovery, retryable),
      'KeyInvalidated' => KeyInvalidated(code, message, recovery, retryable),
      'StorageError' => StorageError(code, message, recovery, retryable),
      'CryptoError' => CryptoError(code, message, recovery, retryable),
      'ClockSkew' => ClockSkew(code, message, recovery, retryable),
      'AlreadyRegistered' => AlreadyRegistered(code, message, recovery, retryable),
      'NotRegistered' => NotRegistered(code, message, recovery, retryable),
      'NotConfigured' => NotConfigured(code, message, recovery, retryable),
      'RegistrationInProgress' => RegistrationInProgress(code, message, recovery, retryable),
      'InvalidStateTransition' => InvalidStateTransition(code, message, recovery, retryable),
      _ => ServerError(code, message, recovery, retryable),
    };
  }
}

final class NetworkError extends SynheartAuthError { const NetworkError(super.code, super.message, super.recovery, super.retryable); }
final class ChallengeExpired extends SynheartAuthError { const ChallengeExpired(super.code, super.message, super.recovery, super.retryable); }
final class AttestationUnavailable extends SynheartAuthError { const AttestationUnavailable(super.code, super.message, super.recovery, super.retryable); }
final class KeyInvalidated extends SynheartAuthError { const KeyInvalidated(super.code, super.message, super.recovery, super.retryable); }
final class StorageError extends SynheartAuthError { const StorageError(super.code, super.message, super.recovery, super.retryable); }
final class CryptoError extends SynheartAuthError { const CryptoError(super.code, super.message, super.recovery, super.retryable); }
final class ClockSkew extends SynheartAuthError { const ClockSkew(super.code, super.message, super.recovery, super.retryable); }
final class AlreadyRegistered extends SynheartAuthError { const AlreadyRegistered(super.code, super.message, super.recovery, super.retryable); }
final class NotRegistered extends SynheartAuthError { const NotRegistered(super.code, super.message, super.recovery, super.retryable); }
final class NotConfigured extends SynheartAuthError { const NotConfigured(super.code, super.message, super.recovery, super.retryable); }
final class RegistrationInProgress extends SynheartAuthError { const RegistrationInProgress(super.code, super.message, super.recovery, super.retryable); }
final class InvalidStateTransition extends SynheartAuthError { const InvalidStateTransition(super.code, super.message, super.recovery, super.retryable); }
final class ServerError extends SynheartAuthError { const ServerError(super.code, super.message, super.recovery, super.retryable); }

typedef _CallC = Int32 Function(Pointer<Void>, Pointer<Utf8>, Pointer<Pointer<Utf8>>);
typedef _Call = int Function(Pointer<Void>, Pointer<Utf8>, Pointer<Pointer<Utf8>>);

/// Registers and signs. Calls block, so each runs in an isolate of its own.
class SynheartAuth {
  SynheartAuth(this._library, this._handle);
  final String _library;
  final int _handle;

  Future<Map<String, dynamic>> registerDevice(String appId) => _call('synheart_auth_register_device', appId);
  Future<bool> isRegistered(String appId) async =>
      (await _call('synheart_auth_is_registered', appId))['registered'] as bool;
  Future<String?> getDeviceId(String appId) async =>
      (await _call('synheart_auth_get_device_id', appId))['device_id'] as String?;

  Future<Map<String, dynamic>> _call(String name, String appId) {
    final library = _library, handle = _handle;
    return Isolate.run(() {
      final lib = DynamicLibrary.open(library);
      final call = lib.lookupFunction<_CallC, _Call>(name);
      final free = lib.lookupFunction<Void Function(Pointer<Utf8>), void Function(Pointer<Utf8>)>('synheart_auth_string_free');
      return using((arena) {
        final result = arena<Pointer<Utf8>>();
        final status = call(Pointer.fromAddress(handle), appId.toNativeUtf8(allocator: arena), result);
        final json = jsonDecode(result.value.toDartString()) as Map<String, dynamic>;
        free(result.value);
        if (status != 0) throw SynheartAuthError.fromJson(json);
        return json;
      });
    });
  }
}
