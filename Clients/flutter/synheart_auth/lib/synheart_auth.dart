/// A hardware-backed identity of this device for each app, and the signatures that prove it.
library;

export 'src/call_cancellation.dart' show CallCancellation;
export 'src/channel_error.dart' show ChannelError;
export 'src/errors.dart';
export 'src/synheart_auth.dart' show SynheartAuth;
export 'src/values.dart';
