/// A gauge that is read when somebody scrapes, such as the size of a store.
public struct MetricsSource: Sendable {
    let name: String
    let help: String
    let read: @Sendable () async -> Double?

    /// A gauge.
    ///
    /// - Parameters:
    ///   - name: such as `synheart_replay_claims`.
    ///   - help: one sentence, for whoever looks at it.
    ///   - read: the value now; nil: the one before stays.
    public init(_ name: String, help: String, read: @escaping @Sendable () async -> Double?) {
        self.name = name
        self.help = help
        self.read = read
    }
}
