import 'package:flutter/foundation.dart';
import 'package:flutter/material.dart';
import 'package:synheart_auth/synheart_auth.dart';

/// The auth service, and the app's id there.
const String baseUrl = String.fromEnvironment('BASE_URL', defaultValue: 'https://auth.example.com');
const String appId = String.fromEnvironment('APP_ID', defaultValue: 'com.example.app');

Future<void> main() async {
  WidgetsFlutterBinding.ensureInitialized();
  // Development mode: an emulator has no attestation. A release build has no such mode.
  await SynheartAuth.instance.configure(baseUrl, developmentMode: kDebugMode);
  runApp(ExampleApp(auth: SynheartAuth.instance));
}

/// The app.
class ExampleApp extends StatelessWidget {
  /// An app over [auth].
  const ExampleApp({super.key, required this.auth});

  /// The plugin, or a stand-in in tests.
  final SynheartAuth auth;

  @override
  Widget build(BuildContext context) => MaterialApp(title: 'Synheart Auth', home: ExamplePage(auth: auth));
}

/// The page with the operations.
class ExamplePage extends StatefulWidget {
  /// A page over [auth].
  const ExamplePage({super.key, required this.auth});

  /// The plugin, or a stand-in in tests.
  final SynheartAuth auth;

  @override
  State<ExamplePage> createState() => _ExamplePageState();
}

class _ExamplePageState extends State<ExamplePage> {
  late final Stream<IdentityState> _states = widget.auth.states(appId);
  CallCancellation _cancellation = CallCancellation();
  String _text = '';

  @override
  void dispose() {
    // The page is gone, so the answer is not needed. The operation continues.
    _cancellation.cancel();
    super.dispose();
  }

  Future<void> _show(Future<Object?> Function(CallCancellation cancellation) operation) async {
    _cancellation.cancel();
    final CallCancellation cancellation = CallCancellation();
    _cancellation = cancellation;
    String text;
    try {
      text = '${await operation(cancellation)}';
    } on SynheartAuthError catch (error) {
      text = '$error\n${_advice(error)}';
    }
    if (mounted && !cancellation.isCancelled) setState(() => _text = text);
  }

  /// Advice for the person. The switch is exhaustive: a new kind of error does not compile without a case.
  String _advice(SynheartAuthError error) => switch (error) {
    NetworkError() || ChallengeExpired() || RegistrationInProgress() => 'Try again later.',
    ClockSkew() => 'Correct the clock of this device.',
    AttestationUnavailable() => 'This device cannot prove itself.',
    KeyInvalidated() || NotRegistered() => 'Register.',
    DeviceRevoked() => 'This device was revoked. Reset it if you agree.',
    AlreadyRegistered() || CallCancelled() => 'Nothing to do.',
    NotConfigured() || InvalidStateTransition() || CryptoError() => 'Report this.',
    StorageError() => error.isRetryable ? 'Unlock the device and try again.' : 'Report this.',
    ServerError() => 'The service says ${error.serverMessage}.',
  };

  @override
  Widget build(BuildContext context) => Scaffold(
    appBar: AppBar(title: const Text('Synheart Auth')),
    body: ListView(
      padding: const EdgeInsets.all(16),
      children: <Widget>[
        StreamBuilder<IdentityState>(
          stream: _states,
          builder: (BuildContext context, AsyncSnapshot<IdentityState> snapshot) =>
              Text('State: ${snapshot.data?.wire ?? 'unknown'}'),
        ),
        FilledButton(
          onPressed: () => _show(
            (CallCancellation cancellation) => widget.auth.registerDevice(appId, cancellation: cancellation),
          ),
          child: const Text('Register'),
        ),
        FilledButton(
          onPressed: () => _show((CallCancellation cancellation) async {
            final AuthAnswer answer = await widget.auth.send(
              appId,
              const AuthRequest('GET', '$baseUrl/auth/v1/device/status'),
              cancellation: cancellation,
            );
            return 'HTTP ${answer.status}';
          }),
          child: const Text('Send a signed request'),
        ),
        FilledButton(
          onPressed: () =>
              _show((CallCancellation cancellation) => widget.auth.rotateKey(appId, cancellation: cancellation)),
          child: const Text('Rotate the key'),
        ),
        OutlinedButton(
          onPressed: () => _show((CallCancellation cancellation) async {
            await widget.auth.resetDeviceIdentity(appId, cancellation: cancellation);
            return 'The identity is gone.';
          }),
          child: const Text('Reset'),
        ),
        SelectableText(_text),
      ],
    ),
  );
}
