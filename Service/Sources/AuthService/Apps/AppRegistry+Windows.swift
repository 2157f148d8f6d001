extension AppRegistry {
    /// The widest future window (how far ahead a request may be dated) of all enabled apps, in seconds; 0: no app is
    /// enabled. After a loss of the replay claims' history, the app with this window refuses requests for the longest
    /// time.
    ///
    /// If a record cannot be read, this is the largest possible window.
    package func widestFutureWindow() async -> Int64 {
        guard let records = try? await records() else { return 300 }
        return records.filter(\.enabled).map(\.signature.futureWindowSeconds).max() ?? 0
    }
}
