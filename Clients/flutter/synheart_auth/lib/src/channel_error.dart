/// The two halves of the plugin disagree about a message: the Dart half and the native half are of different versions.
///
/// An app cannot recover from it. Stop the app, run `flutter clean`, and build it again.
final class ChannelError extends Error {
  /// An error with an explanation, which contains nothing of the message's content.
  ChannelError(this.message);

  /// The expected shape, the type or size that was found instead, and the place in the message.
  final String message;

  @override
  String toString() => 'ChannelError: $message';
}
