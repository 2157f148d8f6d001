import 'call_cancellation.dart';
import 'channel_synheart_auth.dart';
import 'errors.dart';
import 'values.dart';

/// A hardware-backed identity of this device for each app, and the signatures that prove it.
///
/// Configure once at launch, register, then sign:
///
/// ```dart
/// await SynheartAuth.instance.configure('https://auth.example.com');
/// await SynheartAuth.instance.registerDevice('com.example.app');
/// final headers = await SynheartAuth.instance.signRequest('com.example.app', 'POST', '/v1/readings', body);
/// ```
///
/// An operation that fails throws a [SynheartAuthError]; a cancelled one throws [CallCancelled]. A mistake in the
/// program causes another error: an [ArgumentError] for an argument beyond a limit of the platform channel, or a
/// `ChannelError` if the Dart half and the native half of the plugin are of different versions. The private key never
/// leaves the hardware, and Dart never sees it.
abstract interface class SynheartAuth {
  /// The instance of this app. Each Flutter engine has one.
  static final SynheartAuth instance = ChannelSynheartAuth();

  /// Sets the URL of the auth service, and the options of the SDK. Changes no identity. Call it once at launch.
  ///
  /// The configuration belongs to the process. A second call with the same values changes nothing, even in another
  /// engine or isolate, or after a hot restart. A second call with other values throws [NotConfigured] with recovery
  /// [Recovery.none], and the first values stay in effect.
  ///
  /// - [baseUrl]: the URL of the auth service: https, or http to this machine.
  /// - [origins]: the origins besides the auth service for which [send] and [sign] sign, such as
  ///   `https://api.example.com`.
  /// - [aliases]: earlier origins of the auth service, if it moved to another host.
  /// - [scheme]: the signature scheme of all requests of the app. A device whose service has accepted scheme 2 signs
  ///   under scheme 2 from then on, because the service refuses a lower one.
  /// - [rotatesAutomatically]: whether the SDK does the work of [maintain] in the background.
  /// - [cloudProjectNumber]: Android: the Google Cloud project of Play Integrity, for standard requests. iOS ignores
  ///   it.
  /// - [androidProof]: the choice of Google's proofs that an Android device sends. iOS ignores it.
  /// - [developmentMode]: registers without an attestation, for emulators and CI. A release build throws
  ///   [NotConfigured].
  ///
  /// Throws [NotConfigured] for a malformed URL, and for plain http to another host.
  Future<void> configure(
    String baseUrl, {
    Set<String> origins = const <String>{},
    Set<String> aliases = const <String>{},
    SignatureScheme scheme = SignatureScheme.one,
    bool rotatesAutomatically = true,
    int? cloudProjectNumber,
    AndroidProof androidProof = AndroidProof.either,
    bool developmentMode = false,
  });

  /// Whether the SDK's stored record says that the device is registered. False if the SDK knows that the key is lost. Uses no network.
  Future<bool> isRegistered(String appId);

  /// Registers this device for an app. Idempotent: call it at every launch. For a registered device the call itself sends nothing,
  /// but it may start [maintain] in the background.
  ///
  /// [joins]: whether the call joins a registration in progress. If false, it throws [RegistrationInProgress] instead.
  Future<Registration> registerDevice(String appId, {bool joins = true, CallCancellation? cancellation});

  /// The device id that the service issued, even if the device is still pending; null if it issued none.
  Future<String?> getDeviceId(String appId);

  /// The state of the identity.
  Future<IdentityState> getState(String appId);

  /// The six headers of a signed request. The SDK makes timestamp and nonce. No network.
  ///
  /// [path] is the path as sent: escaped, without the query. [bodyBytes] is the body as sent.
  ///
  /// [scheme]: the scheme that the caller expects; null accepts the scheme under which the device signs. Throws
  /// [SigningFailed] if the device signs under another scheme. Also throws it for scheme 2, which needs the whole URL:
  /// use [sign] instead.
  Future<Map<String, String>> signRequest(
    String appId,
    String method,
    String path,
    List<int> bodyBytes, {
    SignatureScheme? scheme,
  });

  /// The signature headers of a request to [url], the whole URL as sent.
  ///
  /// [asserting]: iOS: whether an App Attest assertion is added. Android ignores it.
  ///
  /// Throws [SigningFailed] unless the URL's origin is the auth service's or one of the configured origins.
  Future<Map<String, String>> sign(
    String appId,
    String method,
    String url,
    List<int> bodyBytes, {
    SignatureScheme? scheme,
    bool asserting = false,
    CallCancellation? cancellation,
  });

  /// Signs a request, sends it, and returns the answer, whatever its status. Recovers once from each refusal that a new signature,
  /// a rotation or a registration can repair. Follows no redirect.
  ///
  /// Throws [DeviceRevoked] with recovery `reset`: registering automatically would undo a revocation.
  Future<AuthAnswer> send(
    String appId,
    AuthRequest request, {
    SignatureScheme? scheme,
    bool asserting = false,
    CallCancellation? cancellation,
  });

  /// A token that any backend can check offline. The SDK fetches it, and renews it past half of its life.
  ///
  /// [audience]: one of the app's audiences; null for the app itself.
  Future<DeviceToken> deviceToken(String appId, {String? audience, CallCancellation? cancellation});

  /// Replaces the key and keeps the device id. Signing continues meanwhile. After a failure the old key stays active.
  Future<KeyRotation> rotateKey(
    String appId, {
    RotationReason reason = RotationReason.scheduled,
    CallCancellation? cancellation,
  });

  /// Ends the identity: tells the service if possible, deletes the key, and clears the record. Never use it as a retry.
  Future<void> resetDeviceIdentity(
    String appId, {
    ResetReason reason = ResetReason.userRequested,
    CallCancellation? cancellation,
  });

  /// Finishes an interrupted rotation, and rotates a key that is due.
  Future<void> maintain(String appId, {CallCancellation? cancellation});

  /// Learns the service's clock from the `server_timestamp` of a `CLOCK_SKEW` answer, in unix seconds.
  ///
  /// [appId]: null for every app used so far. Throws [ClockSkew] if the device's clock is more than 24 hours off.
  Future<void> correctClockSkew(double serverTimestamp, {String? appId});

  /// The changes of state from now on, of all apps. A broadcast stream. In every isolate except the root isolate, its only event
  /// is the error [NotConfigured].
  Stream<StateChange> get stateChanges;

  /// The state of one app: first the current one, then each new one. Listen in the root isolate, as for [stateChanges].
  Stream<IdentityState> states(String appId);
}
