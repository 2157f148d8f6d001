extension AppRegistry {
    /// The most seconds that an app's requests may be dated ahead: after a loss of history, the app that refuses for longest.
    ///
    /// The largest possible value if the records cannot be read.
    package func widestFutureWindow() async -> Int64 {
        guard let records = try? await records() else { return 300 }
        return records.filter(\.enabled).map(\.signature.futureWindowSeconds).max() ?? 0
    }
}
