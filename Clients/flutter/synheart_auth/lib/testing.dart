/// A stand-in for the plugin in the tests of an app: no device, no service, no channel.
library;

export 'src/fake_synheart_auth.dart' show FakeSynheartAuth;
