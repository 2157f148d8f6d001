/// Cancels calls: the app no longer waits for their results.
///
/// A cancelled call ends at once with a `CallCancelled`. The operation continues, because other calls may have joined it:
/// cancelling `registerDevice` does not undo a registration, and a request that `send` signed may arrive.
final class CallCancellation {
  final List<void Function()> _listeners = <void Function()>[];
  bool _isCancelled = false;

  /// Whether [cancel] was called.
  bool get isCancelled => _isCancelled;

  /// Ends the wait of every call that was given this object. A call that gets it later ends at once. A second cancel does nothing.
  void cancel() {
    if (_isCancelled) return;
    _isCancelled = true;
    final List<void Function()> listeners = _listeners.toList();
    _listeners.clear();
    for (final void Function() listener in listeners) {
      listener();
    }
  }

  /// Calls [listener] once when [cancel] is called, until [removeListener].
  void addListener(void Function() listener) => _listeners.add(listener);

  /// Forgets a listener.
  void removeListener(void Function() listener) => _listeners.remove(listener);
}
