// The Dart facade over the C interface: sealed errors, one class for each class of the table of errors.
import 'dart:convert';
import 'dart:ffi';
import 'dart:isolate';
import 'dart:typed_data';

import 'package:ffi/ffi.dart';

sealed class SynheartAuthError implements Exception {
  const SynheartAuthError(this.code, this.message, this.recovery, this.retryable);
  final String code, message, recovery;
  final bool retryable;

  /// The class of a code, as in every facade. `className` is the class that the C interface names.
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

typedef _Handle = Pointer<Void>;
typedef _Text = Pointer<Utf8>;
typedef _Result = Pointer<Pointer<Utf8>>;

/// `synheart_auth_request`, its fields in the header's order.
final class _Request extends Struct {
  @Int32()
  external int scheme;
  external _Text method;
  external _Text url;
  external _Text headers;
  external Pointer<Uint8> body;
  @Int64()
  external int bodyLength;
  external _Text bodyFile;
  @Int64()
  external int deadlineMs;
  @Int64()
  external int maximumAnswer;
}

/// A response, whatever its status.
final class SynheartAnswer {
  const SynheartAnswer(this.status, this.headers, this.body);
  final int status;
  final List<(String, String)> headers;
  final Uint8List body;
}

/// The SDK's operations over the C interface. Calls block, so each runs in its own isolate. All share one instance by its
/// handle.
class SynheartAuth {
  SynheartAuth._(this._library, this._handle);
  final String _library;
  final int _handle;

  /// An instance for the service at [baseUrl], with the platform's defaults (iOS: Keychain, Secure Enclave, App Attest).
  ///
  /// On Android the Java facade creates the instance, because its host has the keys: see `../android`.
  static Future<SynheartAuth> configure(String library, String baseUrl) async {
    final json = await _run(library, (lib, arena, result) {
      final create = lib.lookupFunction<Int32 Function(_Text, _Text, Pointer<Void>, Pointer<_Handle>, _Result),
          int Function(_Text, _Text, Pointer<Void>, Pointer<_Handle>, _Result)>('synheart_auth_create');
      final handle = arena<_Handle>();
      final status = create(baseUrl.toNativeUtf8(allocator: arena), nullptr, nullptr, handle, result);
      return (status, {'handle': handle.value.address});
    });
    return SynheartAuth._(library, json['handle'] as int);
  }

  Future<Map<String, dynamic>> registerDevice(String appId) => _simple('synheart_auth_register_device', appId);

  Future<bool> isRegistered(String appId) async =>
      (await _simple('synheart_auth_is_registered', appId))['registered'] as bool;

  Future<String?> getDeviceId(String appId) async =>
      (await _simple('synheart_auth_get_device_id', appId))['device_id'] as String?;

  Future<String> getState(String appId) async => (await _simple('synheart_auth_get_state', appId))['state'] as String;

  /// A token that any backend can check offline: `token`, `remaining_seconds`. [audience]: one of the app's; null for the app.
  Future<Map<String, dynamic>> deviceToken(String appId, {String? audience}) =>
      _withDetail('synheart_auth_device_token', appId, audience);

  /// Finishes an interrupted rotation, and rotates a key that is due.
  Future<void> maintain(String appId) => _simple('synheart_auth_maintain', appId);

  /// [reason]: `scheduled` or `compromise`.
  Future<Map<String, dynamic>> rotateKey(String appId, {String reason = 'scheduled'}) =>
      _withDetail('synheart_auth_rotate_key', appId, reason);

  /// [reason]: `server_instructed`, `user_requested` or `key_lost`.
  Future<void> resetDeviceIdentity(String appId, {required String reason}) =>
      _withDetail('synheart_auth_reset_device_identity', appId, reason);

  /// Allows signed requests to this origin, such as `https://api.example.com`. Call it before anything else.
  Future<void> allowOrigin(String origin) => _simple('synheart_auth_allow_origin', origin);

  /// Signs a request under [scheme] 1 or 2 (RFC 9421), sends it, and recovers once from errors that a new signature mends.
  /// Returns the response, whatever its status.
  Future<SynheartAnswer> send(String appId, String method, String url,
      {int scheme = 1, Map<String, String> headers = const {}, List<int> body = const []}) async {
    final handle = _handle;
    final json = await _run(_library, (lib, arena, result) {
      final send = lib.lookupFunction<
          Int32 Function(_Handle, _Text, Pointer<_Request>, _Result, Pointer<Pointer<Uint8>>, Pointer<Int64>),
          int Function(_Handle, _Text, Pointer<_Request>, _Result, Pointer<Pointer<Uint8>>,
              Pointer<Int64>)>('synheart_auth_send');
      final free = lib.lookupFunction<Void Function(Pointer<Uint8>), void Function(Pointer<Uint8>)>('synheart_auth_bytes_free');
      final request = _request(arena, scheme, method, url, headers, body);
      final answer = arena<Pointer<Uint8>>(), length = arena<Int64>();
      final status = send(
          Pointer.fromAddress(handle), appId.toNativeUtf8(allocator: arena), request, result, answer, length);
      // A copy: the library frees what it allocated.
      final received = length.value == 0 ? Uint8List(0) : Uint8List.fromList(answer.value.asTypedList(length.value));
      free(answer.value);
      return (status, {'body': received});
    });
    final lines = (json['headers'] as List<dynamic>).cast<Map<String, dynamic>>();
    return SynheartAnswer(json['status'] as int,
        [for (final line in lines) (line['name'] as String, line['value'] as String)], json['body'] as Uint8List);
  }

  /// The headers of a request that the app sends itself, under [scheme] 1 or 2.
  Future<Map<String, String>> sign(String appId, String method, String url,
      {int scheme = 1, List<int> body = const []}) async {
    final handle = _handle;
    final json = await _run(_library, (lib, arena, result) {
      final sign = lib.lookupFunction<Int32 Function(_Handle, _Text, Pointer<_Request>, _Result),
          int Function(_Handle, _Text, Pointer<_Request>, _Result)>('synheart_auth_sign');
      final request = _request(arena, scheme, method, url, const {}, body);
      return (sign(Pointer.fromAddress(handle), appId.toNativeUtf8(allocator: arena), request, result), const {});
    });
    return (json['headers'] as Map<String, dynamic>).cast<String, String>();
  }

  static Pointer<_Request> _request(
      Arena arena, int scheme, String method, String url, Map<String, String> headers, List<int> body) {
    final request = arena<_Request>();
    request.ref
      ..scheme = scheme
      ..method = method.toNativeUtf8(allocator: arena)
      ..url = url.toNativeUtf8(allocator: arena)
      ..headers = jsonEncode(headers).toNativeUtf8(allocator: arena)
      ..body = (arena<Uint8>(body.length + 1)..asTypedList(body.length).setAll(0, body))
      ..bodyLength = body.length
      ..bodyFile = nullptr
      ..deadlineMs = 0
      ..maximumAnswer = 0;
    return request;
  }

  /// The six headers of a request under scheme 1, to any host.
  Future<Map<String, String>> signRequest(String appId, String method, String path, [List<int> body = const []]) async {
    final handle = _handle;
    final json = await _run(_library, (lib, arena, result) {
      final sign = lib.lookupFunction<
          Int32 Function(_Handle, _Text, _Text, _Text, Pointer<Uint8>, Int64, _Result),
          int Function(_Handle, _Text, _Text, _Text, Pointer<Uint8>, int, _Result)>('synheart_auth_sign_request');
      final bytes = arena<Uint8>(body.length + 1)..asTypedList(body.length).setAll(0, body);
      return (
        sign(Pointer.fromAddress(handle), appId.toNativeUtf8(allocator: arena), method.toNativeUtf8(allocator: arena),
            path.toNativeUtf8(allocator: arena), bytes, body.length, result),
        const {}
      );
    });
    return (json['headers'] as Map<String, dynamic>).cast<String, String>();
  }

  /// The longest time of each later call, except [send].
  Future<void> setDeadline(Duration deadline) {
    final handle = _handle;
    return _run(_library, (lib, arena, result) {
      final set = lib.lookupFunction<Int32 Function(_Handle, Int64, _Result), int Function(_Handle, int, _Result)>(
          'synheart_auth_set_deadline');
      return (set(Pointer.fromAddress(handle), deadline.inMilliseconds, result), const {});
    });
  }

  /// [serverTimestamp]: unix seconds, as in a CLOCK_SKEW response.
  Future<void> correctClockSkew(String appId, double serverTimestamp) {
    final handle = _handle;
    return _run(_library, (lib, arena, result) {
      final correct = lib.lookupFunction<Int32 Function(_Handle, _Text, Double, _Result),
          int Function(_Handle, _Text, double, _Result)>('synheart_auth_correct_clock_skew');
      return (
        correct(Pointer.fromAddress(handle), appId.toNativeUtf8(allocator: arena), serverTimestamp, result),
        const {}
      );
    });
  }

  Future<Map<String, dynamic>> _simple(String name, String text) {
    final handle = _handle;
    return _run(_library, (lib, arena, result) {
      final call = lib.lookupFunction<Int32 Function(_Handle, _Text, _Result), int Function(_Handle, _Text, _Result)>(name);
      return (call(Pointer.fromAddress(handle), text.toNativeUtf8(allocator: arena), result), const {});
    });
  }

  Future<Map<String, dynamic>> _withDetail(String name, String appId, String? detail) {
    final handle = _handle;
    return _run(_library, (lib, arena, result) {
      final call = lib.lookupFunction<Int32 Function(_Handle, _Text, _Text, _Result),
          int Function(_Handle, _Text, _Text, _Result)>(name);
      return (
        call(Pointer.fromAddress(handle), appId.toNativeUtf8(allocator: arena),
            detail?.toNativeUtf8(allocator: arena) ?? nullptr, result),
        const {}
      );
    });
  }

  /// Runs a call in an isolate. Returns its JSON and its further result, or throws its error.
  static Future<Map<String, dynamic>> _run(
          String library, (int, Map<String, dynamic>) Function(DynamicLibrary, Arena, _Result) call) =>
      Isolate.run(() => using((arena) {
            final lib = DynamicLibrary.open(library);
            final free = lib.lookupFunction<Void Function(_Text), void Function(_Text)>('synheart_auth_string_free');
            final result = arena<Pointer<Utf8>>();
            final (status, beside) = call(lib, arena, result);
            final json = jsonDecode(result.value.toDartString()) as Map<String, dynamic>;
            free(result.value);
            if (status != 0) throw SynheartAuthError.fromJson(json);
            return {...json, ...beside};
          }));
}
